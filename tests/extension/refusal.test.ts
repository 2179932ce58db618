import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalText } from "../../extension/src/model/status.ts";

test("what the server would not do is told in words, and its advice stands behind", () => {
  assert.equal(
    refusalText("session_live", { hint: "Close it in Codex." }),
    "Not done: another program has this session open. Close it in Codex.",
  );
  assert.equal(refusalText("unknown_turn", {}), "This turn is no longer here.");
});

test("a file that cannot be read is that of the session, unless a person named another", () => {
  const file = "/home/dev/shop.pack.json";
  assert.equal(refusalText("unreadable_source", { file }), "This file cannot be read.");
  assert.match(refusalText("unreadable_source", {}), /file of this session/);
});

test("a conflict says with what, as far as there are words for it", () => {
  assert.equal(
    refusalText("conflict", { reason: "imported" }),
    "Not done: this pack was imported already.",
  );
  assert.equal(refusalText("conflict", { reason: "something new" }), "Not done: conflict.");
});

test("a code without words is named, and an advice that is no text is not", () => {
  assert.equal(refusalText("policy_text", { hint: 7 }), "Not done: policy_text.");
});

test("settings that cannot be read are no hook", () => {
  assert.equal(
    refusalText("blocked_by_hook", { reason: "settings", hint: "Ask the doctor." }),
    "Not done: the settings cannot be read. Ask the doctor.",
  );
  assert.match(refusalText("blocked_by_hook", { reason: "no" }), /a hook that runs before/);
});
