/** The session tree: this workspace's sessions by time, then the others by folder. */

import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { Branch, Marker, SessionSummary, Window } from "../client/protocol.ts";
import { setContext, workspacePaths } from "../client/settings.ts";
import { type Appearance, counted, folderName, listed, rowOf } from "../common/model/text.ts";
import { APART_MS, Tree, treeItem } from "../common/rows.ts";
import { windowRow } from "../compaction/model/texts.ts";
import { isDetached, markerRow } from "../markers/model/texts.ts";
import { type RemoteNode, RemoteRows, remoteItem } from "../team/tree.ts";
import { branchRow, type End } from "./model/branches.ts";
import {
  byFolder,
  byTime,
  contextValueOf,
  type Filter,
  family,
  filterText,
  folded,
  hasBelow,
  isBranch,
  isFiltered as isFilteredBy,
  NO_FILTER,
  newestFirst,
  partsOf,
  sessionRow,
  sessionsParams,
  sharedStart,
} from "./model/rows.ts";
import type { ChangeFeed } from "./sessionInView.ts";

export const SESSIONS_VIEW = "codexCheckpoints.sessions";

const PAGE = 50;

/** Maximum number of rows of a folded group that are loaded to find a session. */
const MOST_SOUGHT = 400;

/** Maximum number of attempts to select a row. */
const TRIES = 5;

export class SessionTree extends Tree<SessionNode> {
  /** The rows of the remote, which are loaded when the user unfolds it. */
  readonly remote: RemoteRows;
  readonly #wanted = new Map<string, number>();
  /** The shown rows of sessions, and the parent of each row. */
  readonly #shown = new Map<string, SessionRow>();
  readonly #above = new WeakMap<SessionNode, SessionNode>();
  /** The session to select when its row is visible. */
  #toSelect: string | null = null;
  #filter: Filter = NO_FILTER;
  /** Number of running loads of the top rows. */
  #asking = 0;

  constructor(server: Server, feed: ChangeFeed) {
    super(SESSIONS_VIEW, server);
    this.remote = new RemoteRows(server, () => this.refresh());
    this.subscriptions.push(
      feed.onDidChange(() => this.#waits || this.refresh()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
    );
  }

  get filter(): Filter {
    return this.#filter;
  }

  set filter(filter: Filter) {
    this.#filter = filter;
    this.remote.search(filter.search);
    this.#wanted.clear();
    this.view.description = filterText(filter);
    this.refresh();
  }

  showMore(group: Group): void {
    this.#wanted.set(group.id, 2 * group.limit);
    this.refresh();
  }

  /** Whether the server is still reading the sessions; it learns the newest first. */
  get #isEarly(): boolean {
    return this.server.state.kind === "indexing";
  }

  /** Whether only the newest are shown or requested until the server has read all sessions. */
  get #waits(): boolean {
    return this.#isEarly && (this.#shown.size > 0 || this.#asking > 0);
  }

  protected override mayLoad(): boolean {
    return this.#isEarly || super.mayLoad();
  }

  /**
   * Select the row of a session, and unfold the rows above it; false if there is none, or it is not
   * wanted any more.
   */
  async reveal(sessionId: string, focus = true, isWanted = () => true): Promise<boolean> {
    if (!this.#shown.has(sessionId)) {
      // A new session may not be loaded yet; the editor must not be given older rows then.
      await this.redraw();
    }
    if (!this.#shown.has(sessionId)) {
      await this.#seek(sessionId, isWanted);
    }
    for (let tries = 0; tries < TRIES; tries++) {
      const row = this.#shown.get(sessionId);
      if (row === undefined || !isWanted()) {
        return false;
      }
      // The rows may change meanwhile, and the editor may not have drawn this one yet.
      await this.view.reveal(row, { select: true, focus }).then(undefined, () => {});
      const [chosen] = this.view.selection;
      if (chosen?.kind === "session" && chosen.session.sessionId === sessionId) {
        return true;
      }
      await sleep(APART_MS);
    }
    return false;
  }

  /** Load groups that were never unfolded, and more of them, until one has the session. */
  async #seek(sessionId: string, isWanted: () => boolean): Promise<void> {
    while (!this.#shown.has(sessionId) && isWanted()) {
      const groups = (await this.load()).filter((node) => node.kind === "group");
      const loaded = await Promise.all(groups.map((group) => this.load(group)));
      const longer = loaded.flat().flatMap((node) => (node.kind === "more" ? [node.group] : []));
      if (this.#shown.has(sessionId) || !longer.some(({ limit }) => limit < MOST_SOUGHT)) {
        return;
      }
      for (const { id, limit } of longer) {
        this.#wanted.set(id, 2 * limit);
      }
      await this.redraw();
    }
  }

  /**
   * Select a session's row as soon as it is visible; with `unfolds` also one that is folded or not
   * loaded.
   */
  select(sessionId: string, unfolds: boolean): void {
    this.#toSelect = sessionId;
    this.#selectWhenInSight();
    if (unfolds && this.#toSelect === sessionId && this.view.visible) {
      void this.reveal(sessionId, false, () => this.#toSelect === sessionId);
    }
  }

  protected override published(): void {
    this.#selectWhenInSight();
  }

  #selectWhenInSight(): void {
    const sessionId = this.#toSelect;
    const row = sessionId === null ? undefined : this.#shown.get(sessionId);
    if (sessionId === null || row === undefined || !this.view.visible) {
      return;
    }
    for (let above = this.getParent(row); above !== undefined; above = this.getParent(above)) {
      if (!this.isUnfolded(above)) {
        return;
      }
    }
    this.#toSelect = null;
    const [chosen] = this.view.selection;
    // A child of the session's row counts too.
    if (!(chosen && "session" in chosen && chosen.session.sessionId === sessionId)) {
      void this.reveal(sessionId, false);
    }
  }

  getParent(node: SessionNode): SessionNode | undefined {
    return this.#above.get(node);
  }

  protected itemOf(node: SessionNode): vscode.TreeItem {
    return sessionItem(node);
  }

  protected override async load(node?: SessionNode): Promise<SessionNode[]> {
    const isTop = node === undefined;
    if (isTop) {
      this.#shown.clear();
      this.#asking += 1;
    }
    const children = await super.load(node);
    this.#asking -= isTop ? 1 : 0;
    this.#note(children, node);
    return children;
  }

  /** Record the parents of rows, including folded rows. */
  #note(rows: readonly SessionNode[], above: SessionNode | undefined): void {
    for (const row of rows) {
      if (above !== undefined) {
        this.#above.set(row, above);
      }
      if (row.kind === "session") {
        this.#shown.set(row.session.sessionId, row);
      }
      if (row.kind === "session" || row.kind === "fold") {
        this.#note(row.children, row);
      }
    }
  }

  protected async rows(
    node: SessionNode | undefined,
    isNewest: () => boolean,
  ): Promise<SessionNode[]> {
    if (node === undefined) {
      const roots = await this.#roots();
      if (isNewest()) {
        const isKnown = roots.length > 0 || this.#isEarly;
        const reason = isKnown ? "" : await this.#whyEmpty();
        if (!isNewest()) {
          return roots;
        }
        setContext("empty", reason);
        const isQuiet = vscode.workspace.isTrusted || roots.length === 0;
        const restricted = "Restricted Mode: programs named by this folder are not run.";
        // In an empty tree the message would replace the welcome text, which says the same.
        this.showMessage(isQuiet ? "" : restricted);
      }
      return roots;
    }
    if (node.kind === "group") {
      const below = await this.#below(node);
      const nothing = { kind: "note", group: node.id, text: "No sessions" } as const;
      return below.length === 0 ? [nothing] : below;
    }
    if (node.kind === "fold") {
      return [...node.children];
    }
    if (node.kind === "remote") {
      return [...this.remote.below(node)];
    }
    return node.kind === "session" ? this.#belowSession(node) : [];
  }

  /** Return the reason by its name in the welcome conditions of package.json. */
  async #whyEmpty(): Promise<string> {
    if (isFilteredBy(this.#filter)) {
      return "filtered";
    }
    const some = sessionsParams({ archived: true, limit: 1 });
    if ((await this.server.request("sessions", some)).items.length > 0) {
      return "archived";
    }
    const report = await this.server.request("doctor", {});
    const missing = ["codex_home_missing", "sessions_folder_missing"];
    return report.findings.some(({ code }) => missing.includes(code)) ? "noFolder" : "noSessions";
  }

  /** The sessions of this machine, and the remote if one is set. */
  async #roots(): Promise<SessionNode[]> {
    const [here, remote] = await Promise.all([this.#rootsHere(), this.remote.top()]);
    if (here.length > 0 || remote.length === 0 || this.#isEarly) {
      return [...here, ...remote];
    }
    const isFiltered = isFilteredBy(this.#filter);
    const text = isFiltered ? "No session here matches" : "No session on this machine yet";
    return [{ kind: "note", group: "here", text }, ...remote];
  }

  /** A single folder's days are at the top; several folders have a group each. */
  async #rootsHere(): Promise<SessionNode[]> {
    const paths = await workspacePaths();
    const isFiltered = isFilteredBy(this.#filter);
    const others = this.#group("others", "Other Folders", null, {
      without: paths,
      isOpen: isFiltered,
    });
    const [first, ...rest] = paths;
    if (rest.length > 0) {
      const groups = paths.map((path) => this.#group(path, folderName(path), path));
      return [...groups, ...(await this.#counted(others))];
    }
    const here = this.#group("here", "", first ?? null);
    const below = await this.#below(here);
    if (first === undefined) {
      return below;
    }
    if (below.length > 0 || isFiltered) {
      return [...below, ...(await this.#counted(others))];
    }
    const elsewhere = await this.#counted({ ...others, isOpen: true });
    return elsewhere.length === 0 ? [] : [await this.#noteHere(here), ...elsewhere];
  }

  /** Return a group with the number of its sessions; nothing if it has none. */
  async #counted(group: Group): Promise<Group[]> {
    const count = await this.#count(group, this.#filter);
    return count === 0 ? [] : [{ ...group, count }];
  }

  async #count({ cwd, without: outside }: Group, { search, archived }: Filter): Promise<number> {
    const some = { archived, search: search === "" ? null : search, early: this.#isEarly };
    const asked = sessionsParams({ cwd, outside, limit: 1, ...some });
    const { items, left } = await this.server.request("sessions", asked);
    return items.length + left;
  }

  /** Say why this folder has no sessions, above those of other folders. */
  async #noteHere(here: Group): Promise<SessionNode> {
    const count = await this.#count(here, { search: "", archived: true });
    if (count === 0) {
      return { kind: "note", group: "here", text: "No session in this folder yet" };
    }
    const many = `${count} archived sessions in this folder`;
    const text = counted(count, "1 archived session in this folder", many);
    return { kind: "note", group: "archived", text };
  }

  async #below(group: Group): Promise<SessionNode[]> {
    const listing = await this.#listed(group);
    const shown = `${listing.sessions.length}${listing.more ? "+" : ""}`;
    this.server.log.info(`sessions ${group.id === "others" ? "others" : "here"}: ${shown}`);
    const nodes = foldsOf(group, listing.sessions);
    return listing.more ? [...nodes, { kind: "more", group }] : nodes;
  }

  async #listed(group: Group) {
    const { search, archived } = this.#filter;
    const asked = { cwd: group.cwd, outside: group.without, limit: group.limit };
    const some = { archived, search: search === "" ? null : search, early: this.#isEarly };
    const page = await this.server.request("sessions", sessionsParams({ ...asked, ...some }));
    return { sessions: page.items, more: page.nextCursor !== null };
  }

  /** The source, markers, branches, subagents and windows of a session. */
  async #belowSession(shown: SessionRow): Promise<SessionNode[]> {
    const row = await this.#readWhole(shown);
    const [markers, { source, branches }, windows] = await Promise.all([
      this.#markers(row),
      this.#branches(row),
      this.#windows(row),
    ]);
    return [...source, ...markers, ...branches, ...row.children, ...windows];
  }

  /** Return the complete row; for most sessions only the start and end were read before. */
  async #readWhole(row: SessionRow): Promise<SessionRow> {
    const { sessionId, seq } = row.session;
    if (seq !== null) {
      return row;
    }
    const { summary } = await this.server.request("session", { sessionId });
    return { ...row, session: summary };
  }

  async #markers({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.markers === 0) {
      return [];
    }
    const { items } = await this.server.request("marks", { sessionId: session.sessionId });
    return items.map((marker) => ({ kind: "marker", group, session, marker }) as const).reverse();
  }

  /** Rows for the source and for the branches, the newest first. */
  async #branches({ group, session, children }: SessionRow) {
    const none: { source: SessionNode[]; branches: SessionNode[] } = { source: [], branches: [] };
    if (session.branches === 0 && !isBranch(session)) {
      return none;
    }
    const { sessionId } = session;
    const { source, items } = await this.server.request("branches", { sessionId });
    // One with a row of its own below this session needs no link to it.
    const below = children.map((each) => each.kind === "session" && each.session.sessionId);
    const isBelow = (branch: Branch) => below.includes(branch.sessionId);
    const rowOf = (branch: Branch, end: End) =>
      ({ kind: "branch", group, session, branch, end }) as const;
    return {
      source: source === null || isBelow(source) ? [] : [rowOf(source, "source")],
      branches: items
        .filter((branch) => !isBelow(branch))
        .map((branch) => rowOf(branch, "branch"))
        .reverse(),
    };
  }

  async #windows({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.compactions === 0) {
      return [];
    }
    const { sessionId } = session;
    const [{ items }, { events }] = await Promise.all([
      this.server.request("windows", { sessionId }),
      this.server.request("timeline", { sessionId }),
    ]);
    const compactions = events.filter(({ kind }) => kind === "compaction");
    const turns = new Map(compactions.map(({ seq, turn }) => [seq, turn]));
    const rowOf = (window: Window) => {
      const turn = turns.get(window.openedAtSeq) ?? null;
      return { kind: "window", group, session, window, turn } as const;
    };
    return items.map(rowOf).reverse();
  }

  #group(id: string, label: string, cwd: string | null, some: Partial<Group> = {}): Group {
    const limit = this.#wanted.get(id) ?? PAGE;
    return { kind: "group", id, label, cwd, without: [], isOpen: true, limit, ...some };
  }
}

/** A folder's part of the tree, which loads its own pages; `without` lists folders to leave out. */
export interface Group {
  readonly kind: "group";
  readonly id: string;
  readonly label: string;
  readonly cwd: string | null;
  readonly without: readonly string[];
  readonly isOpen: boolean;
  readonly limit: number;
  /** The number of its sessions, if it is shown beside the label. */
  readonly count?: number;
}

export interface SessionRow {
  readonly kind: "session";
  readonly group: string;
  readonly session: SessionSummary;
  /** Below one of the same title: how much the last messages there share (`sharedStart`). */
  readonly shared: number | null;
  readonly children: readonly SessionNode[];
}

/** Related sessions: of one day, of one folder, or with the same first request. */
interface Fold {
  readonly kind: "fold";
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly icon: string;
  readonly isOpen: boolean;
  readonly children: readonly SessionNode[];
}

/** A row below the row of `session`. */
interface Below<K extends string> {
  readonly kind: K;
  readonly group: string;
  readonly session: SessionSummary;
}

export type SessionNode =
  | Group
  | Fold
  | SessionRow
  | (Below<"marker"> & { readonly marker: Marker })
  | (Below<"branch"> & { readonly branch: Branch; readonly end: End })
  | (Below<"window"> & { readonly window: Window; readonly turn: number | null })
  | RemoteNode
  | { readonly kind: "more"; readonly group: Group }
  | { readonly kind: "note"; readonly group: string; readonly text: string };

/** Return the rows of a group's sessions: by day in an open folder, else by folder. */
function foldsOf(group: Group, sessions: readonly SessionSummary[]): SessionNode[] {
  const { roots, children } = family(newestFirst(sessions));
  const { people, withoutMessage, background } = partsOf(roots);
  const { shown, older: olderBySession } = folded(people);
  const rowOf = (session: SessionSummary, shared: number | null = null): SessionNode => {
    const below = (children.get(session.sessionId) ?? []).map((each) => rowOf(each));
    const older = olderBySession.get(session.sessionId) ?? [];
    const start = sharedStart(older);
    const runs: Fold = {
      kind: "fold",
      id: `alike/${group.id}/${session.sessionId}`,
      label: counted(older.length, "1 older session", `${older.length} older sessions`),
      description: "",
      icon: "files",
      isOpen: false,
      children: older.map((each) => rowOf(each, start)),
    };
    const all = older.length === 0 ? below : [...below, runs];
    return { kind: "session", group: group.id, session, shared, children: all };
  };
  const apart = (
    name: string,
    icon: string,
    some: readonly SessionSummary[],
    words: readonly [one: string, many: string],
  ): Fold[] => {
    const fold = { kind: "fold", id: `${name}/${group.id}`, description: "", icon } as const;
    const children = some.map((each) => rowOf(each));
    const label = counted(some.length, ...words);
    return some.length === 0 ? [] : [{ ...fold, label, isOpen: false, children }];
  };
  const isDay = group.cwd !== null;
  const parts = isDay ? byTime(shown, Date.now()) : byFolder(shown);
  // The editor keeps the folding of an id, as above.
  const isOpen = isDay || group.isOpen;
  const folds: SessionNode[] = [...parts].map(([name, some]) => ({
    kind: "fold",
    id: `part/${group.id}/${isOpen}/${name}`,
    label: isDay ? name : folderName(name) || "No folder",
    description: isDay ? "" : name,
    icon: isDay ? "calendar" : "folder",
    isOpen,
    children: some.map((each) => rowOf(each)),
  }));
  return [
    ...folds,
    ...apart("wordless", "comment", withoutMessage, [
      "1 session without a message",
      `${withoutMessage.length} sessions without a message`,
    ]),
    ...apart("background", "server-process", background, [
      "1 background session",
      `${background.length} background sessions`,
    ]),
  ];
}

export function sessionItem(node: SessionNode): vscode.TreeItem {
  const { None, Collapsed } = vscode.TreeItemCollapsibleState;
  switch (node.kind) {
    case "group": {
      // The editor keeps the folding of an id, so open and folded groups have different ids.
      const id = `group/${node.id}/${node.isOpen}`;
      const row = { label: node.label, icon: "folder" };
      if (node.count === undefined) {
        return plainItem(id, row, node.isOpen);
      }
      const many = counted(node.count, "1 session", `${node.count} sessions`);
      const description = String(node.count);
      return plainItem(id, { ...row, description, spoken: listed(row.label, many) }, node.isOpen);
    }
    case "fold":
      return plainItem(node.id, node, node.isOpen);
    case "session": {
      const row = sessionRow(node.session, Date.now(), node.shared);
      const id = `${node.group}/${node.session.sessionId}`;
      const hasMore = node.children.length > 0 || hasBelow(node.session);
      const item = treeItem(id, row, hasMore ? Collapsed : None);
      item.contextValue = contextValueOf(node.session);
      const command = "codexCheckpoints.clickSession";
      item.command = { command, title: "Show This Session", arguments: [node.session] };
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
      const { group, session, branch, end } = node;
      const row = branchRow(branch, end, Date.now());
      const item = treeItem(`${group}/${session.sessionId}/${end}/${branch.sessionId}`, row);
      item.contextValue = branch.kind === "restore" ? `${end} restored` : end;
      const command = "codexCheckpoints.goToSession";
      item.command = { command, title: "Go to Session", arguments: [node] };
      return item;
    }
    case "window": {
      const { group, session, window } = node;
      const row = windowRow(window, node.turn, Date.now());
      const item = treeItem(`${group}/${session.sessionId}/window/${window.number}`, row);
      item.contextValue = window.compactionId === null || window.undone ? "window" : "window ours";
      return item;
    }
    case "more": {
      const label = "Load more";
      const shown = `${node.group.limit} shown`;
      const row = { label, icon: "ellipsis", description: shown };
      const item = plainItem(`more/${node.group.id}`, row);
      const command = "codexCheckpoints.loadMore";
      item.command = { command, title: label, arguments: [node.group] };
      return item;
    }
    case "remote":
    case "remoteSession":
    case "remoteNote":
    case "remoteTrouble":
      return remoteItem(node);
    case "note": {
      const isArchived = node.group === "archived";
      const icon = isArchived ? "archive" : "info";
      const item = plainItem(`note/${node.group}`, { label: node.text, icon });
      if (isArchived) {
        const command = "codexCheckpoints.showArchived";
        item.command = { command, title: "Show Archived Sessions" };
      }
      return item;
    }
    default:
      return node satisfies never;
  }
}

/** A plain text row that does not belong to a session. */
function plainItem(
  id: string,
  some: Pick<Appearance, "label" | "icon"> & Partial<Pick<Appearance, "description" | "spoken">>,
  isOpen: boolean | null = null,
): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const row = rowOf({ spoken: some.label, ...some });
  return treeItem(id, row, isOpen === null ? None : isOpen ? Expanded : Collapsed);
}
