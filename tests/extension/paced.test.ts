import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { OneAtATime, PictureFirst } from "../../extension/src/model/paced.ts";

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

/**
 * A page, what happens to it in order, and the answer to whoever asks for its picture; `rests` is
 * how long its rest takes.
 */
function filled(rests: () => Promise<void> = async () => {}) {
  const done: string[] = [];
  let answer = (_isThere: boolean) => {};
  const ask = () => {
    done.push("ask");
    return new Promise<boolean>((resolve) => {
      answer = resolve;
    });
  };
  const rest = async () => {
    done.push("rest");
    await rests();
  };
  const filling = new PictureFirst(ask, () => done.push("show"), rest);
  const answered = async (isThere: boolean) => {
    answer(isThere);
    await turn();
  };
  return { done, filling, answered };
}

test("the picture is asked for and shown while the page is still being made, the rest when it is drawn", async () => {
  const { done, filling, answered } = filled();
  await answered(true);
  await filling.ready();
  assert.deepEqual(done, ["ask", "show"]);

  await filling.drawn();

  assert.deepEqual(done, ["ask", "show", "rest"]);
});

test("a page that is there before its picture asks for nothing a second time", async () => {
  const { done, filling, answered } = filled();
  await filling.ready();
  assert.deepEqual(done, ["ask"]);

  await answered(true);
  await filling.drawn();

  assert.deepEqual(done, ["ask", "show", "rest"]);
});

test("a page that comes back is shown what is known, and then what is new", async () => {
  const { done, filling, answered } = filled();
  await answered(true);
  await filling.ready();
  await filling.drawn();
  done.length = 0;

  void filling.ready();
  await turn();
  assert.deepEqual(done, ["show", "ask"]);
  await filling.drawn();
  await answered(true);

  assert.deepEqual(done, ["show", "ask", "rest", "show", "rest"]);
  void filling.again();
  await answered(false); // a complaint stays
  assert.deepEqual(done.slice(5), ["ask"]);
});

test("a page that is hidden or closed before its picture comes is shown nothing until it is back", async () => {
  const { done, filling, answered } = filled();
  await filling.ready();
  filling.away();
  await answered(true);
  assert.deepEqual(done, ["ask"]);

  void filling.ready();
  await turn();
  await filling.drawn();
  await answered(true);

  assert.deepEqual(done, ["ask", "show", "ask", "rest", "show", "rest"]);
});

test("what a page drew before it was hidden brings nothing more", async () => {
  const { done, filling, answered } = filled();
  await answered(true);
  await filling.ready();
  filling.away();
  await filling.drawn();

  assert.deepEqual(done, ["ask", "show"]);
});

test("a page that was hidden before it was there asks anew: it may have changed", async () => {
  const { done, filling, answered } = filled();
  await answered(true);
  filling.away();
  done.length = 0;
  void filling.ready();
  await turn();

  assert.deepEqual(done, ["show", "ask"]);
});

test("a page that is hidden asks for no more of its rest, and is shown none that comes late", async () => {
  let finish = () => {};
  const { done, filling, answered } = filled(
    () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  );
  await filling.ready();
  await answered(true);
  void filling.drawn();
  void filling.again();
  await answered(true); // the rest is wanted once more
  filling.away();
  const before = [...done];
  filling.show();
  finish();
  await sleep(50);

  assert.deepEqual(done, before);
  assert.equal(before.filter((each) => each === "rest").length, 1);
});

test("a picture that did not come has no rest, and is asked for by whoever tries again", async () => {
  const { done, filling, answered } = filled();
  await answered(false);
  await filling.ready();
  assert.deepEqual(done, ["ask"]);

  void filling.again();
  await answered(true);
  await filling.drawn();

  assert.deepEqual(done, ["ask", "ask", "show", "rest"]);
});
