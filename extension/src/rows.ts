/** A row's looks as the editor wants them. Everything stays a plain string: nothing is rendered. */

import * as vscode from "vscode";
import type { Badge } from "./model/sessions.ts";
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

const SCHEME = "codex-checkpoints-badge";

/** The address of a badge says all about it, so the provider remembers nothing. */
export function badgeUri({ text, alert }: Badge): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `/${alert ? "alert" : "calm"}/${text}` });
}

/** Have the editor draw them. */
export function provideBadges(): vscode.Disposable {
  return vscode.window.registerFileDecorationProvider({
    provideFileDecoration(uri) {
      const [, alert, text] = uri.path.split("/");
      if (uri.scheme !== SCHEME || !text) {
        return undefined;
      }
      const tooltip = `context ${text} percent`;
      const colour = alert === "alert" ? "list.warningForeground" : undefined;
      return new vscode.FileDecoration(
        text,
        tooltip,
        colour === undefined ? undefined : new vscode.ThemeColor(colour),
      );
    },
  });
}
