import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { OneAtATime } from "../../extension/src/model/paced.ts";

test("what is asked for many times during the work is done once more, and after a pause", async () => {
  const done: string[] = [];
  let finish = () => {};
  const work = async () => {
    done.push("begins");
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    done.push("ends");
  };
  const one = new OneAtATime(work, async () => done.push("pause"));

  const all = [one.run(), one.run(), one.run()];
  await turn();
  assert.deepEqual(done, ["begins"]);
  finish();
  await turn();
  assert.deepEqual(done, ["begins", "ends", "pause", "begins"]);
  finish();
  await Promise.all(all);
  assert.deepEqual(done, ["begins", "ends", "pause", "begins", "ends"]);
});

test("work that failed can be done again", async () => {
  let times = 0;
  const one = new OneAtATime(async () => {
    times += 1;
    assert.notEqual(times, 1);
  });

  await assert.rejects(one.run());
  await one.run();

  assert.equal(times, 2);
});
