/** The session in view: the chosen one, else the running one of this workspace, else its newest. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { followedOf, isBranch, runningOf, sessionsParams } from "./model/sessions.ts";
import { SessionRequest, type SessionSummary, SessionsRequest } from "./protocol.ts";
import { codeOf } from "./requests.ts";
import { setContext, workspacePaths } from "./settings.ts";

const LOOKED_AT = 50;

/** The session in view, and which sessions changed. */
export interface Followed {
  readonly session: SessionSummary | null;
  readonly changes: Changes;
}

export class Following implements vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<Followed>();
  readonly onDidChange = this.#emitter.event;
  readonly #server: Server;
  readonly #subscriptions: vscode.Disposable[];
  #chosen: string | null = null;
  #current: SessionSummary | null = null;
  #running: SessionSummary | null = null;
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

  /** The running session of this workspace. */
  get running(): SessionSummary | null {
    return this.#running;
  }

  /** Show this session from now on; null returns to the automatic choice. */
  choose(session: SessionSummary | null): void {
    this.#chosen = session?.sessionId ?? null;
    if (session !== null) {
      this.#current = session;
      this.#publish({ session, changes: null });
    }
    this.look(null);
  }

  /** Look again; calls during a look become one further look. */
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
      this.#running = null;
      this.#publish({ session: this.#current, changes: null });
      return;
    }
    try {
      const here = await this.#here();
      this.#running = runningOf(here);
      const chosen = this.#chosen;
      const found = chosen === null ? null : await this.#chosenOne(chosen, here);
      if (this.#chosen !== chosen) {
        return; // a person chose meanwhile, and the look at that is next
      }
      if (found === null) {
        this.#chosen = null;
      }
      const next = found ?? followedOf(here);
      const isOther = next?.sessionId !== this.#current?.sessionId;
      this.#current = next;
      this.#publish({ session: next, changes: isOther ? null : changes });
    } catch (error) {
      this.#server.log.warn(`following: ${error instanceof Error ? error.message : error}`);
    }
  }

  #publish(followed: Followed): void {
    setContext("hasSession", followed.session !== null);
    setContext("chosen", this.#chosen !== null);
    setContext("hasSource", followed.session !== null && isBranch(followed.session));
    setContext("hasBranches", (followed.session?.branches ?? 0) > 0);
    setContext("made", (followed.session?.madeBy ?? null) !== null);
    this.#emitter.fire(followed);
  }

  /** The newest sessions of this workspace's folders; without a folder, of all. */
  async #here(): Promise<SessionSummary[]> {
    const paths: readonly (string | null)[] = await workspacePaths();
    const folders = paths.length === 0 ? [null] : paths;
    const lists = await Promise.all(
      folders.map((cwd) =>
        this.#server.request(SessionsRequest, sessionsParams({ cwd, limit: LOOKED_AT })),
      ),
    );
    const all = lists.flatMap((list) => list.items);
    return lists.length === 1 ? all : all.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  }

  async #chosenOne(id: string, here: readonly SessionSummary[]): Promise<SessionSummary | null> {
    const listed = here.find((session) => session.sessionId === id);
    if (listed !== undefined) {
      return listed;
    }
    try {
      return (await this.#server.request(SessionRequest, { sessionId: id })).summary;
    } catch (error) {
      if (["unknown_session", "unreadable_source"].includes(codeOf(error))) {
        return null;
      }
      throw error; // a server that is busy or away takes no choice back
    }
  }
}

function union(a: Changes, b: Changes): Changes {
  return a === null || b === null ? null : new Set([...a, ...b]);
}

const GATHER_MS = 150;

/** The ids of changed sessions; null if any session may have changed. */
export type Changes = ReadonlySet<string> | null;

/** Combines changes that come close together into one event. */
export class ChangeFeed implements vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<Changes>();
  readonly onDidChange = this.#emitter.event;
  readonly #subscriptions: vscode.Disposable[];
  #gathered: Set<string> | null = new Set();
  #timer: NodeJS.Timeout | null = null;
  #lastSeq = 0;

  constructor(server: Server) {
    this.#subscriptions = [
      server.onDidChangeState(() => {
        this.#lastSeq = 0;
        this.everything();
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
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      const changes = this.#gathered;
      this.#gathered = new Set();
      this.#timer = null;
      this.#emitter.fire(changes);
    }, GATHER_MS);
  }
}
