/** Work that is asked for faster than it can be done. */

import { setTimeout as sleep } from "node:timers/promises";

/**
 * Does one thing at a time.  Asked for again meanwhile, it does it once more, after a pause as long
 * as the work took: so it never takes more than half of somebody's time.
 */
export class OneAtATime {
  readonly #work: () => Promise<void>;
  readonly #pause: (milliseconds: number) => Promise<unknown>;
  #isBusy = false;
  #again = false;

  constructor(work: () => Promise<void>, pause: (ms: number) => Promise<unknown> = sleep) {
    this.#work = work;
    this.#pause = pause;
  }

  /** Do it, or once more; back when nothing is left to do, or at once where it is under way. */
  async run(): Promise<void> {
    this.#again = true;
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    try {
      while (this.#again) {
        this.#again = false;
        const began = performance.now();
        await this.#work();
        if (this.#again) {
          await this.#pause(performance.now() - began);
        }
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
