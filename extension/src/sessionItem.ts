/** The rows of the tree of sessions, and how each looks. */

import * as vscode from "vscode";
import { badgeUri } from "./badges.ts";
import { branchRow, type End } from "./model/branches.ts";
import { windowRow } from "./model/compaction.ts";
import { isDetached, markerRow } from "./model/markers.ts";
import { badgeOf, hasBelow, sessionRow, standsFor } from "./model/sessions.ts";
import type { Branch, Loss, Marker, SessionSummary, Window } from "./protocol.ts";
import { treeItem } from "./treeItem.ts";

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

/** A marker below its session. */
export interface MarkerRow {
  readonly kind: "marker";
  readonly group: string;
  readonly session: SessionSummary;
  readonly marker: Marker;
}

/** A row that leads to the source of a session, or to a branch; that has its own row elsewhere. */
export interface BranchRow {
  readonly kind: "branch";
  readonly group: string;
  /** The session below which it stands. */
  readonly of: string;
  readonly branch: Branch;
  readonly end: End;
}

export type SessionNode =
  | Group
  | SessionRow
  | MarkerRow
  | BranchRow
  | {
      readonly kind: "window";
      readonly group: string;
      readonly of: string;
      readonly window: Window;
      /** What the compaction that opened it lost; null where that is not known yet. */
      readonly loss: Loss | null;
      readonly session: SessionSummary;
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
      const row = sessionRow(node.session, Date.now(), node.place);
      const id = `${node.group}/${node.session.sessionId}`;
      const hasMore = node.children.length > 0 || hasBelow(node.session);
      const item = treeItem(id, row, hasMore ? Collapsed : None);
      item.contextValue = standsFor(node.session);
      item.resourceUri = badgeUri(badgeOf(node.session));
      return item;
    }
    case "marker": {
      const { group, session, marker } = node;
      const row = markerRow(marker, session, Date.now());
      const item = treeItem(`${group}/${session.sessionId}/marker/${marker.checkpointId}`, row);
      item.contextValue = isDetached(marker, session) ? "marker detached" : "marker";
      return item;
    }
    case "branch": {
      const { group, of, branch, end } = node;
      const row = branchRow(branch, end, Date.now());
      const item = treeItem(`${group}/${of}/${end}/${branch.sessionId}`, row);
      item.contextValue = branch.kind === "restore" ? `${end} restored` : end;
      const command = "codexCheckpoints.goToSession";
      item.command = { command, title: "Go to the Session", arguments: [node] };
      return item;
    }
    case "window": {
      const row = windowRow(node.window, node.loss, Date.now());
      const item = treeItem(`${node.group}/${node.of}/window/${node.window.number}`, row);
      item.contextValue = node.window.compactionId === null ? "window" : "window ours";
      return item;
    }
    case "more": {
      const label = "Load more";
      const description = `${node.group.limit} shown`;
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
