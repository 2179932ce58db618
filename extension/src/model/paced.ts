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
 * shown when both are there; only then the rest is asked for, which takes longer.
 */
export class PictureFirst {
  readonly #picture: OneAtATime;
  readonly #rest: OneAtATime;
  readonly #show: () => void;
  /** Whether the page was never there, so that what is known for it is new. */
  #isFirst = true;
  #isReady = false;
  #isKnown = false;

  /** `ask` returns whether the picture is there to be shown; if not, it has complained. */
  constructor(ask: () => Promise<boolean>, show: () => void, rest: () => Promise<void>) {
    this.#show = show;
    this.#rest = new OneAtATime(async () => {
      if (this.#isReady) {
        await rest();
      }
    });
    this.#picture = new OneAtATime(
      async () => {
        if (await ask()) {
          this.#isKnown = true;
          this.#present();
        }
      },
      async () => {}, // whoever asks again has paused before
    );
    void this.#picture.run();
  }

  /** The page takes what it is shown: for the first time, or again after it was thrown away. */
  async ready(): Promise<void> {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#isReady = true;
    if (isFirst && this.#isKnown) {
      this.#present();
      return;
    }
    this.show(); // the new picture brings the rest
    if (!(isFirst && this.#picture.isBusy)) {
      await this.#picture.run();
    }
  }

  /** The page was closed, or hidden and so thrown away: it takes nothing before it is `ready`. */
  away(): void {
    this.#isFirst = false;
    this.#isReady = false;
  }

  /** Ask for all of it once more. */
  again(): Promise<void> {
    return this.#picture.run();
  }

  /** Show what is known, if the page takes it. */
  show(): void {
    if (this.#isReady && this.#isKnown) {
      this.#show();
    }
  }

  #present(): void {
    this.show();
    void this.#rest.run();
  }
}
