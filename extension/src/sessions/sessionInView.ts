/** The session in view: the chosen session, else this workspace's running or newest session. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { ServerState } from "../client/model/status.ts";
import type { SessionSummary } from "../client/protocol.ts";
import { codeOf } from "../client/requests.ts";
import { setContext, workspacePaths } from "../client/settings.ts";
import { changedAt } from "../common/model/text.ts";
import { followedOf, isBranch, sessionsParams } from "./model/rows.ts";

const LOOKED_AT = 50;

/** Tracks the session in view and reports changed sessions. */
export interface Followed {
  readonly session: SessionSummary | null;
  /** The session in view that was deleted; no session is in view after that. */
  readonly gone: SessionSummary | null;
  readonly changes: Changes;
}

export class Following implements vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<Followed>();
  readonly onDidChange = this.#emitter.event;
  readonly #server: Server;
  readonly #subscriptions: vscode.Disposable[];
  #chosen: string | null = null;
  #current: SessionSummary | null = null;
  #gone: SessionSummary | null = null;
  #looking: Promise<void> | null = null;
  #again: Changes | undefined;

  constructor(server: Server, feed: ChangeFeed) {
    this.#server = server;
    this.#subscriptions = [
      feed.onDidChange((changes) => this.look(changes)),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.look(null)),
    ];
  }

  get current(): SessionSummary | null {
    return this.#current;
  }

  /** Whether the user chose the session in view. */
  get isChosen(): boolean {
    return this.#chosen !== null;
  }

  /** Show this session from now on; null returns to the automatic choice. */
  choose(session: SessionSummary | null): void {
    this.#chosen = session?.sessionId ?? null;
    this.#gone = null;
    if (session !== null) {
      const isOther = session.sessionId !== this.#current?.sessionId;
      this.#current = session;
      // Views that already show it need no reload.
      this.#publish(isOther ? null : new Set());
    }
    // Listeners already have the given session; only its row may be out of date.
    this.look(session === null ? null : new Set());
  }

  /** Reset, for example for another Codex home: missing sessions do not count as deleted. */
  forget(): void {
    this.#chosen = null;
    this.#gone = null;
    this.#current = null;
  }

  /** Update; calls during an update are combined into one further update. */
  look(changes: Changes): void {
    if (this.#looking !== null) {
      const both = this.#again === undefined ? changes : union(this.#again, changes);
      this.#again = both;
      return;
    }
    this.#looking = this.#look(changes).finally(() => {
      this.#looking = null;
      const next = this.#again;
      this.#again = undefined;
      if (next !== undefined) {
        this.look(next);
      }
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#emitter).dispose();
  }

  async #look(changes: Changes): Promise<void> {
    if (this.#server.state.kind !== "ready") {
      this.#publish(null);
      return;
    }
    try {
      const here = await this.#here();
      const chosen = this.#chosen;
      const was = this.#gone ?? this.#current;
      const id = chosen ?? was?.sessionId ?? null;
      const found = id === null ? null : await this.#find(id, here);
      if (this.#chosen !== chosen) {
        return; // the user chose another session meanwhile; the next update shows it
      }
      // Do not silently replace a deleted session with another one.
      this.#gone = found === null ? was : null;
      const next = this.#gone !== null ? null : chosen !== null ? found : followedOf(here);
      const isOther = next?.sessionId !== this.#current?.sessionId;
      this.#current = next;
      this.#publish(isOther ? null : changes);
    } catch (error) {
      this.#server.log.warn(`following: ${error instanceof Error ? error.message : error}`);
    }
  }

  #publish(changes: Changes): void {
    const [session, gone] = [this.#current, this.#gone];
    setContext("looked", this.#server.state.kind === "ready");
    setContext("hasSession", session !== null);
    setContext("gone", gone !== null);
    setContext("chosen", this.#chosen !== null);
    setContext("archived", session?.archived === true);
    setContext("hasSource", session !== null && isBranch(session));
    setContext("hasBranches", (session?.branches ?? 0) > 0);
    setContext("made", (session?.madeBy ?? null) !== null);
    this.#emitter.fire({ session, gone, changes });
  }

  /** Return the newest sessions of the workspace folders; without a folder, the newest of all. */
  async #here(): Promise<SessionSummary[]> {
    const paths: readonly (string | null)[] = await workspacePaths();
    const folders = paths.length === 0 ? [null] : paths;
    const lists = await Promise.all(
      folders.map((cwd) =>
        this.#server.request("sessions", sessionsParams({ cwd, limit: LOOKED_AT })),
      ),
    );
    const all = lists.flatMap((list) => list.items);
    return lists.length === 1 ? all : all.sort((a, b) => (changedAt(a) < changedAt(b) ? 1 : -1));
  }

  async #find(id: string, here: readonly SessionSummary[]): Promise<SessionSummary | null> {
    const listed = here.find((session) => session.sessionId === id);
    if (listed !== undefined) {
      return listed;
    }
    try {
      return (await this.#server.request("session", { sessionId: id })).summary;
    } catch (error) {
      if (codeOf(error) === "unknown_session") {
        return null;
      }
      throw error; // keep the session in view if the server is busy or down
    }
  }
}

function union(a: Changes, b: Changes): Changes {
  return a === null || b === null ? null : new Set([...a, ...b]);
}

const GATHER_MS = 150;

/** The ids of changed sessions; null if any session may have changed. */
export type Changes = ReadonlySet<string> | null;

/** Combines session changes in quick succession into one event; reports server states at once. */
export class ChangeFeed implements vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<Changes>();
  readonly onDidChange = this.#emitter.event;
  readonly #subscriptions: vscode.Disposable[];
  #gathered: Set<string> | null = new Set();
  #timer: NodeJS.Timeout | undefined;
  #lastSeq = 0;
  #was: ServerState["kind"] | null = null;

  constructor(server: Server) {
    this.#subscriptions = [
      server.onDidChangeState(({ kind }) => {
        this.#lastSeq = 0;
        this.#gathered = null;
        kind === this.#was ? this.#soon() : this.#tell();
        this.#was = kind;
      }),
      server.onDidChangeSessions(({ sessionIds, seq }) => {
        const missed = seq !== this.#lastSeq + 1;
        this.#lastSeq = seq;
        if (missed) {
          this.#gathered = null;
        }
        for (const id of sessionIds) {
          this.#gathered?.add(id);
        }
        this.#soon();
      }),
    ];
  }

  everything(): void {
    this.#gathered = null;
    this.#soon();
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#emitter).dispose();
    clearTimeout(this.#timer);
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => this.#tell(), GATHER_MS);
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const changes = this.#gathered;
    this.#gathered = new Set();
    this.#emitter.fire(changes);
  }
}
