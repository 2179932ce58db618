/** The tree of sessions: those of this workspace, then the others, each as many as were asked for. */

import * as vscode from "vscode";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import type { Emptiness, Empty } from "./emptiness.ts";
import type { End } from "./model/branches.ts";
import { KnownLosses } from "./model/knownLosses.ts";
import {
  collect,
  type Filter,
  filterText,
  isFiltered as isFilteredBy,
  isWanted,
  NO_FILTER,
  sessionsParams,
} from "./model/listing.ts";
import { Newest } from "./model/newest.ts";
import { family, isBranch } from "./model/sessions.ts";
import { folderName, harmless } from "./model/text.ts";
import {
  type Branch,
  BranchesRequest,
  LossesRequest,
  MarksRequest,
  type SessionSummary,
  SessionsRequest,
  WindowsRequest,
} from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";
import { type Group, type SessionNode, type SessionRow, sessionItem } from "./sessionItem.ts";
import { workspacePaths } from "./workspace.ts";

export const SESSIONS_VIEW = "codexCheckpoints.sessions";

const PAGE = 50;

export class SessionTree implements vscode.TreeDataProvider<SessionNode>, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<SessionNode | undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly view: vscode.TreeView<SessionNode>;
  readonly #server: Server;
  readonly #emptiness: Emptiness;
  readonly #subscriptions: vscode.Disposable[];
  readonly #wanted = new Map<string, number>();
  /** The rows of sessions that were given to the editor, and what each row stands below. */
  readonly #shown = new Map<string, SessionRow>();
  readonly #above = new WeakMap<SessionNode, SessionNode>();
  readonly #losses: KnownLosses;
  readonly #looks = new Newest();
  #filter: Filter = NO_FILTER;
  #showOthers = false;
  #isStale = false;

  constructor(server: Server, feed: ChangeFeed, emptiness: Emptiness) {
    this.#server = server;
    this.#emptiness = emptiness;
    this.#losses = new KnownLosses(
      (sessionId) => this.#askLosses(sessionId),
      () => this.refresh(),
    );
    this.view = vscode.window.createTreeView(SESSIONS_VIEW, { treeDataProvider: this });
    this.#subscriptions = [
      feed.onDidChange(() => this.refresh()),
      this.view.onDidChangeVisibility(() => this.#isStale && this.refresh()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
    ];
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

  /** Show twice as many. */
  showMore(group: Group): void {
    this.#wanted.set(group.id, 2 * group.limit);
    this.refresh();
  }

  /** Look again, at once when it is seen, else as soon as it is. */
  refresh(): void {
    this.#isStale = !this.view.visible;
    if (this.view.visible) {
      this.#emitter.fire(undefined);
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

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.view, this.#emitter).dispose();
  }

  getTreeItem(node: SessionNode): vscode.TreeItem {
    return sessionItem(node);
  }

  async getChildren(node?: SessionNode): Promise<SessionNode[]> {
    if (node === undefined) {
      this.#shown.clear();
    }
    const children = await this.#children(node);
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

  async #children(node?: SessionNode): Promise<SessionNode[]> {
    // What an older look at the whole finds is shown no more, nor is what it has to say.
    const isNewest = node === undefined ? this.#looks.begin() : () => true;
    if (this.#server.state.kind !== "ready") {
      this.view.message = "";
      return [];
    }
    try {
      if (node === undefined) {
        const { roots, empty } = await this.#roots();
        if (!isNewest()) {
          return roots;
        }
        await this.#emptiness.tell(empty);
        const isQuiet = vscode.workspace.isTrusted || roots.length === 0;
        const restricted = "Restricted Mode: nothing that this folder names is run.";
        // Above an empty tree it would take the place of the welcome text, which says the same.
        this.view.message = isQuiet ? "" : restricted;
        return roots;
      }
      if (node.kind === "group") {
        const below = await this.#below(node);
        const nothing = { kind: "note", group: node.id, text: "No sessions" } as const;
        return below.length === 0 ? [nothing] : below;
      }
      return node.kind === "session" ? await this.#belowSession(node) : [];
    } catch (error) {
      this.#server.log.warn(`sessions: ${error instanceof Error ? error.message : error}`);
      if (isNewest()) {
        this.view.message = harmless(saysRefusal(error));
      }
      return [];
    }
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
        this.#server.request(SessionsRequest, sessionsParams({ ...asked, cursor, limit })),
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
    this.#server.log.info(`sessions ${group.id === "others" ? "others" : "here"}: ${shown}`);
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

  /** The markers of a session, the newest first. */
  async #markers({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.markers === 0) {
      return [];
    }
    const { sessionId } = session;
    const { items } = await this.#server.request(MarksRequest, { sessionId });
    return items.map((marker) => ({ kind: "marker", group, session, marker }) as const).reverse();
  }

  /** The way to the source of a session, and to what came of it, the newest first. */
  async #branches({ group, session }: SessionRow) {
    const none: { source: SessionNode[]; branches: SessionNode[] } = { source: [], branches: [] };
    if (session.branches === 0 && !isBranch(session)) {
      return none;
    }
    const { sessionId } = session;
    const { source, items } = await this.#server.request(BranchesRequest, { sessionId });
    const rowOf = (branch: Branch, end: End) =>
      ({ kind: "branch", group, of: sessionId, branch, end }) as const;
    return {
      source: source === null ? [] : [rowOf(source, "source")],
      branches: items.map((branch) => rowOf(branch, "branch")).reverse(),
    };
  }

  /** The windows of a session that was compacted, the newest first. */
  async #windows({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.compactions === 0) {
      return [];
    }
    const { sessionId } = session;
    const { items } = await this.#server.request(WindowsRequest, { sessionId });
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
      return (await this.#server.request(LossesRequest, { sessionId })).items;
    } catch (error) {
      this.#server.log.warn(`losses: ${error instanceof Error ? error.message : error}`);
      return null;
    }
  }

  #group(id: string, label: string, cwd: string | null, some: Partial<Group> = {}): Group {
    const limit = this.#wanted.get(id) ?? PAGE;
    return { kind: "group", id, label, cwd, without: [], isOpen: true, limit, ...some };
  }
}
