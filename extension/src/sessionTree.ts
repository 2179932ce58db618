/** The tree of sessions: those of this workspace, then the others, each as many as were asked for. */

import * as vscode from "vscode";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import type { Emptiness } from "./emptiness.ts";
import {
  collect,
  type Filter,
  filterText,
  isFiltered as isFilteredBy,
  isWanted,
  NO_FILTER,
  sessionsParams,
} from "./model/listing.ts";
import { family } from "./model/sessions.ts";
import { type SessionSummary, SessionsRequest, WindowsRequest } from "./protocol.ts";
import { type Group, type SessionNode, type SessionRow, sessionItem } from "./sessionItem.ts";
import { workspacePaths } from "./workspace.ts";

const { l10n } = vscode;

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
  #filter: Filter = NO_FILTER;
  #showOthers = false;
  #isStale = false;

  constructor(server: Server, feed: ChangeFeed, emptiness: Emptiness) {
    this.#server = server;
    this.#emptiness = emptiness;
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
    this.view.description = filterText(filter, l10n.t);
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

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.view, this.#emitter).dispose();
  }

  getTreeItem(node: SessionNode): vscode.TreeItem {
    return sessionItem(node);
  }

  async getChildren(node?: SessionNode): Promise<SessionNode[]> {
    if (this.#server.state.kind !== "ready") {
      return [];
    }
    try {
      if (node === undefined) {
        const roots = await this.#roots();
        const isQuiet = vscode.workspace.isTrusted || roots.length === 0;
        const restricted = l10n.t("Restricted Mode: nothing that this folder names is run.");
        // Above an empty tree it would take the place of the welcome text, which says the same.
        this.view.message = isQuiet ? "" : restricted;
        return roots;
      }
      if (node.kind === "group") {
        const below = await this.#below(node);
        const nothing = { kind: "note", group: node.id, text: l10n.t("No sessions") } as const;
        return below.length === 0 ? [nothing] : below;
      }
      return node.kind === "session" ? [...node.children, ...(await this.#windows(node))] : [];
    } catch (error) {
      this.#server.log.warn(`sessions: ${error instanceof Error ? error.message : error}`);
      return [];
    }
  }

  /** One folder's sessions stand at the top; of several folders each has its group. */
  async #roots(): Promise<SessionNode[]> {
    const paths = await workspacePaths();
    const isFiltered = isFilteredBy(this.#filter);
    const others = this.#group("others", l10n.t("Other Folders"), null, {
      without: paths,
      isOpen: this.#showOthers || isFiltered,
    });
    const [first, ...rest] = paths;
    if (rest.length > 0) {
      await this.#emptiness.tell(null);
      return [...paths.map((path) => this.#group(path, nameOf(path), path)), others];
    }
    const below = await this.#below(this.#group("here", "", first ?? null));
    if (first !== undefined && (below.length > 0 || (await this.#hasOthers(others)))) {
      below.push(others);
    }
    const empty = { isFiltered, hasFolder: first !== undefined };
    await this.#emptiness.tell(below.length > 0 ? null : empty);
    return below;
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
      const place = group.cwd === null ? nameOf(session.cwd ?? "") : "";
      return { kind: "session", group: group.id, place, session, children: below };
    };
    const shown = `${listing.sessions.length}${listing.more ? "+" : ""}`;
    this.#server.log.info(`sessions ${group.id === "others" ? "others" : "here"}: ${shown}`);
    const nodes = roots.map(nodeOf);
    return listing.more ? [...nodes, { kind: "more", group }] : nodes;
  }

  /** The windows of a session that was compacted, the newest first. */
  async #windows({ group, session }: SessionRow): Promise<SessionNode[]> {
    if (session.compactions === 0) {
      return [];
    }
    const { sessionId } = session;
    const { items } = await this.#server.request(WindowsRequest, { sessionId });
    const rows = items.map((window) => ({ kind: "window", group, of: sessionId, window }) as const);
    return rows.reverse();
  }

  #group(id: string, label: string, cwd: string | null, some: Partial<Group> = {}): Group {
    const limit = this.#wanted.get(id) ?? PAGE;
    return { kind: "group", id, label, cwd, without: [], isOpen: true, limit, ...some };
  }
}

function nameOf(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}
