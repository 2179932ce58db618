/** The tree of sessions: those of this workspace, then the others, each as many as were asked for. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { ChangeFeed } from "./following.ts";
import { branchRow, type End } from "./model/branches.ts";
import { KnownLosses, windowRow } from "./model/compaction.ts";
import { isDetached, markerRow } from "./model/markers.ts";
import {
  badgeOf,
  collect,
  type Filter,
  family,
  filterText,
  hasBelow,
  isBranch,
  isFiltered as isFilteredBy,
  isWanted,
  NO_FILTER,
  sessionRow,
  sessionsParams,
  standsFor,
} from "./model/sessions.ts";
import { folderName } from "./model/text.ts";
import {
  type Branch,
  BranchesRequest,
  DoctorRequest,
  type Loss,
  LossesRequest,
  type Marker,
  MarksRequest,
  type SessionSummary,
  SessionsRequest,
  type Window,
  WindowsRequest,
} from "./protocol.ts";
import { badgeUri, Tree, treeItem } from "./rows.ts";
import { setContext, workspacePaths } from "./settings.ts";

export const SESSIONS_VIEW = "codexCheckpoints.sessions";

const PAGE = 50;

export class SessionTree extends Tree<SessionNode> {
  readonly #wanted = new Map<string, number>();
  /** The rows of sessions that were given to the editor, and what each row stands below. */
  readonly #shown = new Map<string, SessionRow>();
  readonly #above = new WeakMap<SessionNode, SessionNode>();
  readonly #losses: KnownLosses;
  #filter: Filter = NO_FILTER;
  #showOthers = false;
  #isStale = false;

  constructor(server: Server, feed: ChangeFeed) {
    super(SESSIONS_VIEW, server);
    this.#losses = new KnownLosses(
      (sessionId) => this.#askLosses(sessionId),
      () => this.refresh(),
    );
    this.subscriptions.push(
      feed.onDidChange(() => this.refresh()),
      this.view.onDidChangeVisibility(() => this.#isStale && this.refresh()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
    );
  }

  get filter(): Filter {
    return this.#filter;
  }

  /** Show what is wanted, from the beginning. */
  set filter(filter: Filter) {
    this.#filter = filter;
    this.#wanted.clear();
    this.view.description = filterText(filter);
    this.refresh();
  }

  /** Show other folders' sessions although this workspace has none. */
  showOthers(): void {
    this.#showOthers = true;
    this.refresh();
  }

  showMore(group: Group): void {
    this.#wanted.set(group.id, 2 * group.limit);
    this.refresh();
  }

  /** Look again, at once when it is seen, else as soon as it is. */
  refresh(): void {
    this.#isStale = !this.view.visible;
    if (this.view.visible) {
      this.redraw();
    }
  }

  /** Select the row of a session, where there is one; whether there is. */
  async reveal(sessionId: string): Promise<boolean> {
    if (!this.#shown.has(sessionId)) {
      // It may be so new that nobody has looked yet.
      const roots = await this.getChildren();
      const groups = roots.filter((node) => node.kind === "group" && node.isOpen);
      await Promise.all(groups.map((group) => this.getChildren(group)));
    }
    const row = this.#shown.get(sessionId);
    if (row !== undefined) {
      await this.view.reveal(row, { select: true, focus: true });
    }
    return row !== undefined;
  }

  /** What a row stands below, for the editor to unfold it. */
  getParent(node: SessionNode): SessionNode | undefined {
    return this.#above.get(node);
  }

  getTreeItem(node: SessionNode): vscode.TreeItem {
    return sessionItem(node);
  }

  override async getChildren(node?: SessionNode): Promise<SessionNode[]> {
    if (node === undefined) {
      this.#shown.clear();
    }
    const children = await super.getChildren(node);
    for (const child of children) {
      if (node !== undefined) {
        this.#above.set(child, node);
      }
      if (child.kind === "session") {
        this.#shown.set(child.session.sessionId, child);
      }
    }
    return children;
  }

  protected async rows(
    node: SessionNode | undefined,
    isNewest: () => boolean,
  ): Promise<SessionNode[]> {
    if (node === undefined) {
      const { roots, empty } = await this.#roots();
      if (isNewest()) {
        const reason = empty === null ? "" : await this.#whyEmpty(empty);
        if (!isNewest()) {
          return roots;
        }
        setContext("empty", reason);
        const isQuiet = vscode.workspace.isTrusted || roots.length === 0;
        const restricted = "Restricted Mode: nothing that this folder names is run.";
        // Above an empty tree it would take the place of the welcome text, which says the same.
        this.view.message = isQuiet ? "" : restricted;
      }
      return roots;
    }
    if (node.kind === "group") {
      const below = await this.#below(node);
      const nothing = { kind: "note", group: node.id, text: "No sessions" } as const;
      return below.length === 0 ? [nothing] : below;
    }
    return node.kind === "session" ? this.#belowSession(node) : [];
  }

  /** The welcome texts in package.json go by these words. */
  async #whyEmpty({ isFiltered, hasFolder }: Empty): Promise<string> {
    if (isFiltered) {
      return "filtered";
    }
    if (hasFolder) {
      const any = await this.server.request(SessionsRequest, sessionsParams({ limit: 1 }));
      if (any.items.length > 0) {
        return "notHere";
      }
    }
    const report = await this.server.request(DoctorRequest, {});
    const missing = ["codex_home_missing", "sessions_folder_missing"];
    return report.findings.some(({ code }) => missing.includes(code)) ? "noFolder" : "noSessions";
  }

  /** One folder's sessions stand at the top; of several folders each has its group. */
  async #roots(): Promise<{ readonly roots: SessionNode[]; readonly empty: Empty | null }> {
    const paths = await workspacePaths();
    const isFiltered = isFilteredBy(this.#filter);
    const others = this.#group("others", "Other Folders", null, {
      without: paths,
      isOpen: this.#showOthers || isFiltered,
    });
    const [first, ...rest] = paths;
    if (rest.length > 0) {
      const groups = paths.map((path) => this.#group(path, folderName(path), path));
      return { roots: [...groups, others], empty: null };
    }
    const below = await this.#below(this.#group("here", "", first ?? null));
    if (first !== undefined && (below.length > 0 || (await this.#hasOthers(others)))) {
      below.push(others);
    }
    const empty = { isFiltered, hasFolder: first !== undefined };
    return { roots: below, empty: below.length > 0 ? null : empty };
  }

  /** Whether other folders' sessions are to be shown although this one has none. */
  async #hasOthers(others: Group): Promise<boolean> {
    const isFiltered = isFilteredBy(this.#filter);
    return this.#showOthers || (isFiltered && (await this.#below(others)).length > 0);
  }

  async #below(group: Group): Promise<SessionNode[]> {
    const { search, archived } = this.#filter;
    const some = { archived, search: search === "" ? null : search };
    const asked = { cwd: group.cwd, outside: group.without, ...some };
    const isPicky = this.#filter.running || this.#filter.suspect;
    const listing = await collect(
      (cursor, limit) =>
        this.server.request(SessionsRequest, sessionsParams({ ...asked, cursor, limit })),
      group.limit,
      isPicky ? (each) => isWanted(each, this.#filter) : null,
    );
    const { roots, children } = family(listing.sessions);
    const nodeOf = (session: SessionSummary): SessionNode => {
      const below = (children.get(session.sessionId) ?? []).map(nodeOf);
      const place = group.cwd === null ? folderName(session.cwd ?? "") : "";
      return { kind: "session", group: group.id, place, session, children: below };
    };
    const shown = `${listing.sessions.length}${listing.more ? "+" : ""}`;
    this.server.log.info(`sessions ${group.id === "others" ? "others" : "here"}: ${shown}`);
    const nodes = roots.map(nodeOf);
    return listing.more ? [...nodes, { kind: "more", group }] : nodes;
  }

  /** Where a session came from, its markers and branches, its subagents and windows. */
  async #belowSession(row: SessionRow): Promise<SessionNode[]> {
    const [markers, { source, branches }, windows] = await Promise.all([
      this.#markers(row),
      this.#branches(row),
      this.#windows(row),
    ]);
    return [...source, ...markers, ...branches, ...row.children, ...windows];
  }

  async #markers({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.markers === 0) {
      return [];
    }
    const { sessionId } = session;
    const { items } = await this.server.request(MarksRequest, { sessionId });
    return items.map((marker) => ({ kind: "marker", group, session, marker }) as const).reverse();
  }

  /** The way to the source of a session, and to what came of it, the newest first. */
  async #branches({ group, session }: SessionRow) {
    const none: { source: SessionNode[]; branches: SessionNode[] } = { source: [], branches: [] };
    if (session.branches === 0 && !isBranch(session)) {
      return none;
    }
    const { sessionId } = session;
    const { source, items } = await this.server.request(BranchesRequest, { sessionId });
    const rowOf = (branch: Branch, end: End) =>
      ({ kind: "branch", group, of: sessionId, branch, end }) as const;
    return {
      source: source === null ? [] : [rowOf(source, "source")],
      branches: items.map((branch) => rowOf(branch, "branch")).reverse(),
    };
  }

  async #windows({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.compactions === 0) {
      return [];
    }
    const { sessionId } = session;
    const { items } = await this.server.request(WindowsRequest, { sessionId });
    const losses = this.#losses.of(session);
    const rows = items.map((window) => {
      const loss = losses.find(({ openedAtSeq }) => openedAtSeq === window.openedAtSeq) ?? null;
      return { kind: "window", group, of: sessionId, session, window, loss } as const;
    });
    return rows.reverse();
  }

  /** What the compactions of a session lost; the windows are shown before it is known. */
  async #askLosses(sessionId: string) {
    try {
      return (await this.server.request(LossesRequest, { sessionId })).items;
    } catch (error) {
      this.server.log.warn(`losses: ${error instanceof Error ? error.message : error}`);
      return null;
    }
  }

  #group(id: string, label: string, cwd: string | null, some: Partial<Group> = {}): Group {
    const limit = this.#wanted.get(id) ?? PAGE;
    return { kind: "group", id, label, cwd, without: [], isOpen: true, limit, ...some };
  }
}

/** A part of the tree with its own length. */
export interface Group {
  readonly kind: "group";
  readonly id: string;
  readonly label: string;
  readonly cwd: string | null;
  /** Sessions of these folders are shown elsewhere. */
  readonly without: readonly string[];
  readonly isOpen: boolean;
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

export function sessionItem(node: SessionNode): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  switch (node.kind) {
    case "group":
      // Open and folded have different ids, or the editor would keep it as it was.
      return plainItem(`group/${node.id}/${node.isOpen}`, node.label, "folder", {
        state: node.isOpen ? Expanded : Collapsed,
      });
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
      const shown = `${node.group.limit} shown`;
      const item = plainItem(`more/${node.group.id}`, label, "ellipsis", { description: shown });
      const command = "codexCheckpoints.loadMore";
      item.command = { command, title: label, arguments: [node.group] };
      return item;
    }
    case "note":
      return plainItem(`note/${node.group}`, node.text, "info");
    default:
      return node satisfies never;
  }
}

function plainItem(
  id: string,
  label: string,
  icon: string,
  { description = "", state = vscode.TreeItemCollapsibleState.None } = {},
): vscode.TreeItem {
  const row = { label, description, tooltip: label, spoken: label, icon, colour: null };
  return treeItem(id, row, state);
}

interface Empty {
  readonly isFiltered: boolean;
  readonly hasFolder: boolean;
}
