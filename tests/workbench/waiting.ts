/** Waits for changes that send no event: a process, a state of a page. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

/** Timeout of a step; generous, for a busy machine. */
export const STEP_MS = 60_000;

/** Poll a value until it is as expected. */
export async function becomes<T>(read: () => T | Promise<T>, expected: T): Promise<void> {
  const end = performance.now() + STEP_MS;
  for (;;) {
    const actual = await read();
    if (isDeepStrictEqual(actual, expected) || performance.now() > end) {
      assert.deepEqual(actual, expected);
      return;
    }
    await sleep(100);
  }
}
