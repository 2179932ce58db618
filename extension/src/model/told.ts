/** Texts that are told once, and by which names they are asked for again. */

import { randomUUID } from "node:crypto";

/** The texts of this window.  A reload forgets them, while the editor keeps the names in its tabs. */
export class Told {
  readonly #texts = new Map<string, string>();

  /** Keep a text; its name is new, so that no tab of before is taken for this one. */
  keep(text: string): string {
    const name = randomUUID();
    this.#texts.set(name, text);
    return name;
  }

  /** The text of a name; undefined where it was not kept. */
  text(name: string): string | undefined {
    return this.#texts.get(name);
  }
}
