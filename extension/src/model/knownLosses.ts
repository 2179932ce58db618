/** What is known of the losses of each session: finding out takes the server a look at all of its file. */

import type { Loss, SessionSummary } from "../protocol.ts";

/** Finds out; null where nobody could tell. */
export type AskLosses = (sessionId: string) => Promise<readonly Loss[] | null>;

export class KnownLosses {
  /** What was found, and up to which record. */
  readonly #known = new Map<string, { readonly seq: number; readonly items: readonly Loss[] }>();
  readonly #asking = new Set<string>();
  readonly #ask: AskLosses;
  readonly #found: () => void;

  /** `found` hears that there is news. */
  constructor(ask: AskLosses, found: () => void) {
    this.#ask = ask;
    this.#found = found;
  }

  /**
   * What is known of a session by now.  Where that is not up to its last record it is asked for,
   * one question at a time; one without an answer is asked again at the next look.
   */
  of({ sessionId, seq }: SessionSummary): readonly Loss[] {
    const known = this.#known.get(sessionId);
    if (known?.seq !== seq && !this.#asking.has(sessionId)) {
      void this.#look(sessionId, seq);
    }
    return known?.items ?? [];
  }

  async #look(sessionId: string, seq: number): Promise<void> {
    this.#asking.add(sessionId);
    const items = await this.#ask(sessionId);
    this.#asking.delete(sessionId);
    if (items !== null) {
      this.#known.set(sessionId, { seq, items });
      this.#found();
    }
  }
}
