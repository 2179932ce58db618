/** A page gets its whole state whenever it is loaded, whoever loads it again. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../extension/src/common/model/outbox.ts";
import type { ToPage } from "../../extension/src/common/model/pages.ts";

const message = (kind: string, about = ""): ToPage => ({ kind, about }) as unknown as ToPage;
const VIEW = message("preview");
const FILES = message("files");
const PLACE = message("place");
const ERROR = message("trouble");

/** An outbox, and the messages that a page received since the last look. */
function outbox() {
  const sent: ToPage[] = [];
  const box = new Outbox((each) => void sent.push(each));
  return { box, received: () => sent.splice(0) };
}

test("a page that is loaded gets its view and everything that was added, in order", () => {
  const { box, received } = outbox();
  box.add(FILES);
  assert.deepEqual(received(), []);
  box.show(VIEW);
  box.complain(ERROR);
  assert.deepEqual(received(), [VIEW, FILES, ERROR]);
  for (const loaded of ["first", "by the editor"]) {
    box.listens();
    assert.deepEqual(received(), [VIEW, FILES, ERROR], loaded);
  }
});

test("a part that arrives while the page is loaded again is not lost", () => {
  const { box, received } = outbox();
  box.show(VIEW);
  box.listens();
  box.reload();
  box.add(FILES);
  box.show(VIEW);
  received(); // lost: the page is still loading
  box.listens();
  assert.deepEqual(received(), [VIEW, FILES]);
});

test("only the newest part of a kind is sent again, and nothing of before a reload", () => {
  const { box, received } = outbox();
  box.show(message("preview", "old"));
  box.add(message("files", "old"));
  box.reload();
  box.show(VIEW);
  box.add(message("files", "middle"));
  box.add(FILES);
  received();
  box.listens();
  assert.deepEqual(received(), [VIEW, FILES]);
});

test("a view removes the error", () => {
  const { box, received } = outbox();
  box.complain(ERROR);
  box.show(VIEW);
  received();
  box.listens();
  assert.deepEqual(received(), [VIEW]);
});

test("a message that is sent once waits for the script and for the view", () => {
  for (const order of ["script first", "view first"]) {
    const { box, received } = outbox();
    box.once(PLACE);
    const steps = [() => box.listens(), () => box.show(VIEW)];
    for (const step of order === "script first" ? steps : steps.toReversed()) {
      assert.equal(received().includes(PLACE), false, order);
      step();
    }
    assert.equal(received().at(-1), PLACE, order);
    box.listens();
    assert.deepEqual(received(), [VIEW], order);
  }
});
