/** Waiting for what tells nobody when it changes: a process, a state of a page. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

/** So long no step of a test takes, be the machine as busy as it may. */
export const STEP_MS = 60_000;

/** Wait until a value, read again each time, is as expected. */
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
