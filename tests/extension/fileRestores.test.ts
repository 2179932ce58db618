import assert from "node:assert/strict";
import { test } from "node:test";
import { rowWords } from "../../extension/src/model/fileRestores.ts";
import type { RestoredFile } from "../../extension/src/protocol.ts";

const FILE: RestoredFile = {
  ...{ path: "a.py", state: "restore", label: "restore", proof: "diff", why: null },
  ...{ hashNow: null, hashThen: null, before: null, after: null, movedTo: null },
  ...{ added: 0, removed: 0, offered: true, on: true, written: false },
};

test("a row says what is done, how many lines, and why", () => {
  const more = { path: "src/$(x)\u202e.py", label: "merge", added: 2, removed: 1, why: "old" };

  assert.deepEqual(rowWords(FILE), { label: "a.py", description: "restore" });
  assert.deepEqual(rowWords({ ...FILE, ...more }), {
    label: "src/\\$(x) .py",
    description: "merge · +2 −1",
    detail: "old",
  });
});
