/** The rows of the tree of sessions, and how each looks. */

import * as vscode from "vscode";
import { badgeUri } from "./badges.ts";
import { windowRow } from "./model/compaction.ts";
import { badgeOf, sessionRow } from "./model/sessions.ts";
import type { SessionSummary, Window } from "./protocol.ts";
import { treeItem } from "./treeItem.ts";

const { l10n } = vscode;

/** A part of the tree with its own length. */
export interface Group {
  readonly kind: "group";
  readonly id: string;
  readonly label: string;
  readonly cwd: string | null;
  /** Sessions of these folders are shown elsewhere. */
  readonly without: readonly string[];
  readonly isOpen: boolean;
  /** How many are shown. */
  readonly limit: number;
}

/** A session, with its subagents below it. */
export interface SessionRow {
  readonly kind: "session";
  readonly group: string;
  /** The folder's name, where that is not clear from the group. */
  readonly place: string;
  readonly session: SessionSummary;
  readonly children: readonly SessionNode[];
}

export type SessionNode =
  | Group
  | SessionRow
  | {
      readonly kind: "window";
      readonly group: string;
      readonly of: string;
      readonly window: Window;
    }
  | { readonly kind: "more"; readonly group: Group }
  | { readonly kind: "note"; readonly group: string; readonly text: string };

/** Make the tree item of a row. */
export function sessionItem(node: SessionNode): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  switch (node.kind) {
    case "group": {
      const { id, label, isOpen } = node;
      // Open and folded have different ids, or the editor would keep it as it was.
      const looks = { label, description: "", tooltip: label, spoken: label, icon: "folder" };
      const state = isOpen ? Expanded : Collapsed;
      return treeItem(`group/${id}/${isOpen}`, { ...looks, colour: null }, state);
    }
    case "session": {
      const row = sessionRow(node.session, Date.now(), l10n.t, node.place);
      const id = `${node.group}/${node.session.sessionId}`;
      const hasMore = node.children.length > 0 || node.session.compactions > 0;
      const item = treeItem(id, row, hasMore ? Collapsed : None);
      item.contextValue = node.session.archived ? "archivedSession" : "session";
      item.resourceUri = badgeUri(badgeOf(node.session));
      return item;
    }
    case "window": {
      const row = windowRow(node.window, Date.now(), l10n.t);
      const item = treeItem(`${node.group}/${node.of}/window/${node.window.number}`, row);
      item.contextValue = "window";
      return item;
    }
    case "more": {
      const label = l10n.t("Load more");
      const description = l10n.t("{0} shown", node.group.limit);
      const looks = { label, description, tooltip: label, spoken: label, icon: "ellipsis" };
      const item = treeItem(`more/${node.group.id}`, { ...looks, colour: null });
      const command = "codexCheckpoints.loadMore";
      item.command = { command, title: label, arguments: [node.group] };
      return item;
    }
    case "note": {
      const looks = { label: node.text, description: "", tooltip: node.text, spoken: node.text };
      return treeItem(`note/${node.group}`, { ...looks, icon: "info", colour: null });
    }
    default:
      return node satisfies never;
  }
}
