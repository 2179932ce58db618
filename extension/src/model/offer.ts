/** When to say that a context is nearly full: once for each window of a session. */

import type { Offer, SessionSummary } from "../protocol.ts";

/** How full the window is that the server goes by, in percent. */
export function percentOf(offer: Offer): number {
  return Math.floor((offer.tokens * 100) / offer.window);
}

/** Remembers of which sessions a person has been told. */
export class Hints {
  /** The windows that a session had when they were told. */
  readonly #told = new Map<string, number>();
  readonly #since: number;

  /** What was done before `since` is nobody's concern now. */
  constructor(since: number) {
    this.#since = since;
  }

  /**
   * Whether to tell of a session now.  While a turn is open nothing is offered, which says nothing
   * of the context: only a later window may be told of again.
   */
  isDue({ sessionId, windows, offer, updatedAt }: SessionSummary): boolean {
    const isTold = windows <= (this.#told.get(sessionId) ?? 0);
    if (offer === null || isTold || Date.parse(updatedAt) < this.#since) {
      return false;
    }
    this.#told.set(sessionId, windows);
    return true;
  }
}
