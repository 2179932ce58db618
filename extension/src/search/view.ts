/** The search view: hits appear below their sessions as they are found, and stay there. */

import * as vscode from "vscode";
import { ProgressType } from "vscode-languageclient/node";
import type { Server } from "../client/client.ts";
import { OneAtATime } from "../client/model/status.ts";
import type {
  SearchSessionsAnswer,
  SearchSessionsParams,
  SessionHits,
} from "../client/protocol.ts";
import { errorText } from "../client/requests.ts";
import { setContext } from "../client/settings.ts";
import { harmless, rowOf } from "../common/model/text.ts";
import { APART_MS, Tree, treeItem } from "../common/rows.ts";
import { sessionsParams } from "../sessions/model/rows.ts";
import {
  FILE,
  type GroupNode,
  groupRow,
  type HitNode,
  hitRow,
  hitRows,
  isEnough,
  moreHitsLabel,
  neighbour,
  type Query,
  type SearchNode,
  type SearchState,
  searchText,
} from "./model/rows.ts";

const SEARCH_VIEW = "codexCheckpoints.searchResults";

/** Pause in typing before a search starts. */
const PAUSE_MS = 150;
/** Number of hits of a session shown at first. */
const PER_SESSION = 10;
/** Hit limit of a search in all sessions, and the factor by which each click raises it. */
const [FIRST_LIMIT, FURTHER] = [500, 4];

const PARTS = new ProgressType<Pick<SearchSessionsAnswer, "items">>();

/** A search and its results: the row of each session, and its child rows. */
interface Found {
  /** Part of the row ids, so that a new search's rows are unfolded and not selected. */
  readonly number: number;
  readonly query: Query;
  readonly limit: number;
  readonly groups: Map<string, GroupNode>;
  readonly rows: Map<string, readonly SearchNode[]>;
  state: SearchState;
  /** Why the search is incomplete. */
  trouble: string;
}

type Find = (found: Found) => SearchNode | undefined;

/** Attempts to focus a row before it counts as gone. */
const TRIES = 20;

export class SearchView extends Tree<SearchNode> {
  readonly #drawing = new OneAtATime(() => this.redraw());
  readonly #focusing = new OneAtATime(() => this.#focusWanted());
  /** The shown search. */
  #found: Found | null = null;
  #running: { readonly found: Found; readonly stop: vscode.CancellationTokenSource } | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** The last chosen row. */
  #chosen: SearchNode | null = null;
  /** Finds the row to focus once it exists. */
  #toFocus: { readonly find: Find; tries: number; readonly selected: string } | null = null;
  #searches = 0;

  constructor(server: Server) {
    super(SEARCH_VIEW, server, true);
    this.subscriptions.push(
      this.view.onDidChangeSelection(({ selection: [row] }) => {
        this.#chosen = row ?? this.#chosen;
      }),
    );
  }

  /** The search whose hits are shown. */
  get shown(): Query | null {
    return this.#found?.query ?? null;
  }

  /** The latest search. */
  get query(): Query | null {
    return (this.#running?.found ?? this.#found)?.query ?? null;
  }

  /** Search after a pause in typing, and cancel the previous search. */
  soon(query: Query): void {
    if (isEnough(query.text)) {
      this.#end();
      this.#timer = setTimeout(() => void this.search(query), PAUSE_MS);
    } else {
      this.stop();
    }
  }

  /** Search; the shown hits stay until the first new hit is found. */
  async search(query: Query): Promise<void> {
    this.#searches += 1;
    this.#chosen = null;
    this.#toFocus = null;
    const none = { groups: new Map(), rows: new Map() };
    await this.#search({ number: this.#searches, query, limit: FIRST_LIMIT, ...none });
  }

  /** Continue the search in older sessions. */
  async searchOlder(): Promise<void> {
    if (this.#found !== null) {
      const known = this.#found.groups.size;
      this.#focusOn(({ groups }) => [...groups.values()][known]);
      await this.#search({ ...this.#found, limit: this.#found.limit * FURTHER });
    }
  }

  /** Stop the running search; its hits stay. */
  stop(): void {
    const found = this.#running?.found;
    this.#end();
    if (found !== undefined) {
      this.#show(found, "stopped");
    }
  }

  /** Show the view; the focus stays where it is. */
  async open(): Promise<void> {
    setContext("searchOpen", true);
    await vscode.commands.executeCommand(`${SEARCH_VIEW}.focus`, { preserveFocus: true });
  }

  /** Clear the hits, and hide the view. */
  close(): void {
    this.#end();
    this.#toFocus = null;
    setContext("searchOpen", false);
    this.#found = null;
    this.#chosen = null;
    this.#draw();
  }

  /** Show all hits of a session, beyond the limit. */
  async showAll({ session: { sessionId }, hits }: SessionHits): Promise<void> {
    const found = this.#found;
    if (found !== null) {
      this.#focusOn(({ rows }) => rows.get(sessionId)?.[hits.length]);
      const asked = { ...paramsOf(found.query), sessionId, carried: false };
      put(found, (await this.server.request("searchSessions", asked)).items);
      this.#draw();
    }
  }

  /** Give the first hit the focus, as soon as there is one. */
  focusFirst(): void {
    this.#focusOn(({ rows }) => [...rows.values()][0]?.[0]);
  }

  /** Record the opened hit as the chosen one. */
  choose(row: HitNode): void {
    this.#chosen = row;
    this.#toFocus = null;
  }

  /** Select the hit after the chosen one, or before it; the focus stays where it is. */
  revealNext(step: 1 | -1): HitNode | null {
    const rows = [...(this.#found?.rows.values() ?? [])].flat();
    const hits = rows.filter((row) => row.kind === "hit");
    const row = neighbour(hits, this.#chosen, step);
    if (row !== null) {
      void this.#reveal(row, false);
    }
    return row;
  }

  getParent(row: SearchNode): SearchNode | undefined {
    return row.kind === "hit" ? this.#found?.groups.get(row.sessionId) : undefined;
  }

  protected override mayLoad(): boolean {
    return true; // the rows are here
  }

  protected override async rows(row: SearchNode | undefined): Promise<SearchNode[]> {
    const found = this.#found;
    if (found === null) {
      return [];
    }
    if (row !== undefined) {
      return row.kind === "session" ? [...(found.rows.get(row.session.sessionId) ?? [])] : [];
    }
    const more: SearchNode[] = found.state === "limited" ? [{ kind: "moreSessions" }] : [];
    return [...found.groups.values(), ...more];
  }

  protected itemOf(row: SearchNode): vscode.TreeItem {
    const named = (...parts: (string | number)[]) => [this.#found?.number, ...parts].join(" ");
    switch (row.kind) {
      case "session": {
        const { Expanded } = vscode.TreeItemCollapsibleState;
        const shown = groupRow(row.group, Date.now());
        return marked(treeItem(named(row.session.sessionId), shown, Expanded), "sessionHits");
      }
      case "hit": {
        const { row: shown, highlights } = hitRow(row.hit, this.#highlighted, Date.now());
        const item = treeItem(named(row.sessionId, row.at), shown);
        item.label = { label: shown.label, highlights };
        return marked(item, "hit", ["openHit", "Show in Session", row]);
      }
      case "moreHits": {
        const shown = rowOf({ label: moreHitsLabel(row.group), icon: "ellipsis" });
        const item = treeItem(named(row.group.session.sessionId, "more"), shown);
        return marked(item, "more", ["showAllHits", "Show All Hits", row]);
      }
      default: {
        const shown = rowOf({ label: "Search older sessions", icon: "ellipsis" });
        return marked(treeItem(named("more"), shown), "more", ["searchOlder", shown.label, row]);
      }
    }
  }

  protected override published(): void {
    // After the rows: the editor shows the first update at once, the others a moment later.
    const found = this.#found;
    const groups = [...(found?.groups.values() ?? [])].map(({ group }) => group);
    const text = found === null ? "" : searchText(found.query, groups, found.state);
    this.showMessage(found?.trouble || text);
    void this.#focusing.run();
  }

  /** Return the text to highlight; a file's row only has its path. */
  get #highlighted(): string {
    const query = this.#found?.query;
    return query === undefined || query.kinds.includes(FILE) ? "" : query.text;
  }

  async #search(some: Omit<Found, "state" | "trouble">): Promise<void> {
    this.#end();
    const stop = new vscode.CancellationTokenSource();
    const found: Found = { ...some, state: "searching", trouble: "" };
    this.#running = { found, stop };
    setContext("searching", true);
    const take = (items: readonly SessionHits[], state: SearchState) => {
      if (!stop.token.isCancellationRequested) {
        put(found, items);
        this.#show(found, state);
      }
    };
    try {
      await vscode.window.withProgress({ location: { viewId: SEARCH_VIEW } }, async () => {
        const { more } = await this.#ask(found, stop.token, (items) => take(items, "searching"));
        const isNowhere = found.groups.size === 0 && !(await this.#isAnySession(stop.token));
        take([], isNowhere ? "nowhere" : more ? "limited" : "whole");
      });
    } catch (error) {
      found.trouble = harmless(errorText(error));
      take([], "stopped");
    } finally {
      if (this.#running?.found === found) {
        this.#end();
      }
    }
  }

  async #isAnySession(token: vscode.CancellationToken): Promise<boolean> {
    return (
      (await this.server.request("sessions", sessionsParams({ limit: 1 }), token)).items.length > 0
    );
  }

  /** Send a search; `take` gets the hits of each session as they are found. */
  async #ask(
    { number, query, limit }: Found,
    token: vscode.CancellationToken,
    take: (items: readonly SessionHits[]) => void,
  ): Promise<SearchSessionsAnswer> {
    const partialResultToken = `search-${number}-${limit}`;
    const limits = query.session === null ? { limit, perSession: PER_SESSION } : {};
    const asked = { ...paramsOf(query), ...limits, partialResultToken };
    const listening = this.server.client?.onProgress(PARTS, partialResultToken, ({ items }) =>
      take(items),
    );
    try {
      return await this.server.request("searchSessions", asked, token);
    } finally {
      listening?.dispose();
    }
  }

  #show(found: Found, state: SearchState): void {
    found.state = state;
    this.#found = found;
    this.#draw();
  }

  #draw(): void {
    const found = this.#found;
    const of = found?.query.kinds.includes(FILE) ? "file" : "text";
    setContext("searched", found === null ? false : of);
    setContext("hasHits", found !== null && found.groups.size > 0);
    void this.#drawing.run();
  }

  #focusOn(find: Find): void {
    this.#toFocus = { find, tries: 0, selected: this.#selected };
    void this.#focusing.run();
  }

  /** Focus the wanted row; retry, since a row cannot take the focus while it is being drawn. */
  async #focusWanted(): Promise<void> {
    const isOld = this.#running !== null && this.#running.found !== this.#found;
    const wanted = this.#toFocus;
    const row = this.#found === null || isOld ? undefined : wanted?.find(this.#found);
    if (wanted === null || row === undefined || row.kind === "moreHits") {
      return;
    }
    await this.#reveal(row, true);
    wanted.tries += 1;
    // Without a selection, the row that requested more hits is gone.
    const isChanged = ![wanted.selected, ""].includes(this.#selected);
    if (isChanged || this.#selected === this.idOf(row) || wanted.tries === TRIES) {
      this.#toFocus = this.#toFocus === wanted ? null : this.#toFocus;
    } else {
      setTimeout(() => void this.#focusing.run(), APART_MS);
    }
  }

  /** Return the id of the selected row. */
  get #selected(): string {
    return this.idOf(this.view.selection[0]);
  }

  async #reveal(row: SearchNode, focus: boolean): Promise<void> {
    // The rows may have changed meanwhile.
    await this.view.reveal(row, { select: true, focus }).then(undefined, () => {});
  }

  /** Cancel the running and the scheduled search. */
  #end(): void {
    clearTimeout(this.#timer);
    this.#running?.stop.cancel();
    this.#running = null;
    setContext("searching", false);
  }
}

/** Store the hits; a session that already has as many hits is left unchanged. */
function put({ groups, rows }: Found, items: readonly SessionHits[]): void {
  for (const group of items) {
    const { sessionId } = group.session;
    if ((groups.get(sessionId)?.group.hits.length ?? -1) < group.hits.length) {
      groups.set(sessionId, { kind: "session", session: group.session, group });
      rows.set(sessionId, hitRows(group));
    }
  }
}

function paramsOf({ text, kinds, session }: Query): SearchSessionsParams {
  const sessionId = session?.sessionId ?? null;
  const tokens = { workDoneToken: null, partialResultToken: null };
  const all = { cwd: null, archived: false, limit: null, perSession: null, carried: true };
  return { text, kinds, sessionId, ...all, ...tokens };
}

/** Set a row's menu and the command for a click or Enter. */
function marked(
  item: vscode.TreeItem,
  menu: string,
  run?: readonly [command: string, title: string, row: SearchNode],
): vscode.TreeItem {
  item.contextValue = menu;
  if (run !== undefined) {
    const [command, title, row] = run;
    item.command = { command: `codexCheckpoints.${command}`, title, arguments: [row] };
  }
  return item;
}
