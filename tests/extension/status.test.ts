import assert from "node:assert/strict";
import { test } from "node:test";
import { Newest, OneAtATime } from "../../extension/src/client/model/status.ts";
import { KeptTexts } from "../../extension/src/common/model/documents.ts";

test("an answer counts until another question is begun", () => {
  const questions = new Newest();
  const isFirstNewest = questions.begin();
  assert.equal(isFirstNewest(), true);

  const isSecondNewest = questions.begin();
  assert.equal(isFirstNewest(), false);
  assert.equal(isSecondNewest(), true);
  assert.equal(isSecondNewest(), true, "asking changes nothing");
});

test("the name of a stored text is unique to its window", () => {
  const [here, elsewhere] = [new KeptTexts(), new KeptTexts()];
  const name = here.keep("all that a model will be told");

  assert.notEqual(elsewhere.keep("something else"), name);
  assert.equal(here.text(name), "all that a model will be told");
  assert.equal(elsewhere.text(name), undefined);
});

test("requests made during the work cause one more run", async () => {
  const done: string[] = [];
  const ends: (() => void)[] = [];
  const one = new OneAtATime(async () => {
    done.push("begins");
    await new Promise<void>((resolve) => ends.push(resolve));
    done.push("ends");
  });

  const all = [one.run(), one.run(), one.run()];
  ends.at(-1)?.();
  await new Promise((later) => setImmediate(later));
  ends.at(-1)?.();
  await Promise.all(all);
  assert.deepEqual(done, ["begins", "ends", "begins", "ends"]);
});
