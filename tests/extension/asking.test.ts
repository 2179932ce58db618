import assert from "node:assert/strict";
import { test } from "node:test";
import { KnownLosses } from "../../extension/src/model/compaction.ts";
import { KeptTexts } from "../../extension/src/model/documents.ts";
import { Newest } from "../../extension/src/model/status.ts";
import type { Loss } from "../../extension/src/protocol.ts";
import { session } from "./values.ts";

test("an answer counts until another question is begun", () => {
  const questions = new Newest();
  const isFirstNewest = questions.begin();
  assert.equal(isFirstNewest(), true);

  const isSecondNewest = questions.begin();
  assert.equal(isFirstNewest(), false);
  assert.equal(isSecondNewest(), true);
  assert.equal(isSecondNewest(), true, "asking changes nothing");
});

test("a text that was told has a name that no other window gives", () => {
  const [here, elsewhere] = [new KeptTexts(), new KeptTexts()];
  const name = here.keep("all that a model will be told");

  assert.notEqual(elsewhere.keep("something else"), name);
  assert.equal(here.text(name), "all that a model will be told");
  assert.equal(elsewhere.text(name), undefined);
});

/** Losses that are told when the test says so. */
function asking() {
  const answers: ((items: readonly Loss[] | null) => void)[] = [];
  let news = 0;
  const losses = new KnownLosses(
    () => new Promise((answer) => answers.push(answer)),
    () => {
      news += 1;
    },
  );
  const answer = async (items: readonly Loss[] | null) => {
    answers.at(-1)?.(items);
    await new Promise((done) => setImmediate(done));
  };
  return { losses, answer, asked: () => answers.length, news: () => news };
}

const LOSS = { openedAtSeq: 40 } as Loss;

test("losses are asked for once a record, and what was known is shown meanwhile", async () => {
  const { losses, answer, asked, news } = asking();
  assert.deepEqual(losses.of(session({ seq: 5 })), []);
  assert.deepEqual(losses.of(session({ seq: 6 })), []);
  assert.equal(asked(), 1, "one question at a time");

  await answer([LOSS]);
  assert.equal(news(), 1);
  assert.deepEqual(losses.of(session({ seq: 5 })), [LOSS]);
  assert.equal(asked(), 1);

  assert.deepEqual(losses.of(session({ seq: 6 })), [LOSS]);
  assert.equal(asked(), 2, "the session went on");
});

test("losses that nobody could tell are asked for again at the next look", async () => {
  const { losses, answer, asked, news } = asking();
  losses.of(session({ seq: 5 }));
  await answer(null);
  assert.equal(news(), 0, "else a server that fails would be asked without end");

  assert.deepEqual(losses.of(session({ seq: 5 })), []);
  assert.equal(asked(), 2);
});
