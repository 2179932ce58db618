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

  get isBusy(): boolean {
    return this.#isBusy;
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

/**
 * Fills a page in two steps.  The picture is asked for while the page itself is still being made, and
 * sent as soon as it is there: the editor keeps what comes for a page that it makes.  The rest, which
 * takes longer, is asked for when the page has drawn the picture: it would come before it is painted.
 */
export class PictureFirst {
  readonly #picture: OneAtATime;
  readonly #rest: OneAtATime;
  readonly #show: () => void;
  #page: "new" | "ready" | "drawn" | "away" = "new";
  #isKnown = false;

  /** `ask` returns whether the picture is there to be shown; if not, it has complained. */
  constructor(ask: () => Promise<boolean>, show: () => void, rest: () => Promise<void>) {
    this.#show = show;
    this.#rest = new OneAtATime(async () => {
      if (this.#page === "drawn" && this.#isKnown) {
        await rest();
      }
    });
    this.#picture = new OneAtATime(
      async () => {
        if (await ask()) {
          this.#isKnown = true;
          this.show();
          void this.#rest.run();
        }
      },
      async () => {}, // whoever asks again has paused before
    );
    void this.#picture.run();
  }

  /** The page takes what it is shown: for the first time, or again after it was thrown away. */
  async ready(): Promise<void> {
    const isNew = this.#page === "new";
    this.#page = "ready";
    if (!isNew) {
      this.show();
      await this.#picture.run();
    }
  }

  /** The page has drawn its picture. */
  async drawn(): Promise<void> {
    if (this.#page === "ready") {
      this.#page = "drawn";
      await this.#rest.run();
    }
  }

  /** The page was closed, or hidden and so thrown away: it takes nothing before it is `ready`. */
  away(): void {
    this.#page = "away";
  }

  /** Ask for all of it once more. */
  again(): Promise<void> {
    return this.#picture.run();
  }

  /** Show what is known, if the page takes it. */
  show(): void {
    if (this.#page !== "away" && this.#isKnown) {
      this.#show();
    }
  }
}
