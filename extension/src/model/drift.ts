/** What a session edited off its plan, gathered so that one warning stands for all of it. */

import type { Strayed } from "../protocol.ts";
import { plain } from "./text.ts";

/** A file to choose; the name comes from a rollout, and is shown as plain text. */
export interface StrayedFile {
  readonly uri: string;
  readonly label: string;
}

/** The files of each session whose warning nobody has answered yet. */
export class Drift {
  readonly #waiting = new Map<string, Set<string>>();

  /** Take a notice; whether a warning is due, since none of its session is shown. */
  add({ sessionId, uris }: Strayed): boolean {
    const known = this.#waiting.get(sessionId);
    this.#waiting.set(sessionId, new Set([...(known ?? []), ...uris]));
    return known === undefined;
  }

  /** All that came while the warning was shown; the next notice is warned of again. */
  take(sessionId: string): readonly StrayedFile[] {
    const uris = this.#waiting.get(sessionId) ?? [];
    this.#waiting.delete(sessionId);
    return [...uris].map((uri) => ({ uri, label: plain(uri) }));
  }
}
