/** Gathers what the server says has changed, so that ten notifications cost one look. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";

const GATHER_MS = 150;

/** Which sessions changed; null means: any of them may have. */
export type Changes = ReadonlySet<string> | null;

/** One event for all that happened within a moment. */
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

  /** Anything may have changed. */
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

  /** The first change starts the wait; later ones do not prolong it. */
  #soon(): void {
    this.#timer ??= setTimeout(() => {
      const changes = this.#gathered;
      this.#gathered = new Set();
      this.#timer = null;
      this.#emitter.fire(changes);
    }, GATHER_MS);
  }
}
