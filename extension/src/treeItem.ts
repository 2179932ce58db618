/** A row's looks as the editor wants them. Everything stays a plain string: nothing is rendered. */

import * as vscode from "vscode";
import type { Appearance } from "./model/text.ts";

/** Make a tree item; the id keeps a row unfolded and selected while its text changes. */
export function treeItem(
  id: string,
  row: Appearance,
  state: vscode.TreeItemCollapsibleState = vscode.TreeItemCollapsibleState.None,
): vscode.TreeItem {
  const item = new vscode.TreeItem(row.label, state);
  item.id = id;
  item.description = row.description;
  item.tooltip = row.tooltip;
  item.accessibilityInformation = { label: row.spoken };
  item.iconPath = new vscode.ThemeIcon(
    row.icon,
    row.colour === null ? undefined : new vscode.ThemeColor(row.colour),
  );
  return item;
}
