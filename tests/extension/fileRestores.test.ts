import assert from "node:assert/strict";
import { test } from "node:test";
import type { RestoredFile } from "../../extension/src/client/protocol.ts";
import { readShownFile, shownFileText } from "../../extension/src/common/model/documents.ts";
import {
  readPaths,
  readScope,
  restoreLabel,
  rowWords,
} from "../../extension/src/restore/model/files.ts";

const FILE: RestoredFile = {
  ...{ path: "a.py", state: "restore", label: "restore", proof: "diff", why: null },
  ...{ hashNow: null, hashThen: null, before: null, after: null, movedTo: null },
  ...{ added: 0, removed: 0, offered: true, on: true, written: false },
};

test("a row shows the action, the number of lines, and the reason", () => {
  const more = { path: "src/$(x)\u202e.py", label: "merge", added: 2, removed: 1, why: "old" };

  assert.deepEqual(rowWords(FILE), { label: "a.py", description: "restore" });
  assert.deepEqual(rowWords({ ...FILE, ...more }), {
    label: "src/\\$(x) .py",
    description: "merge · +2 −1",
    detail: "old",
  });
});

test("the button counts the files it writes, and the conversation alone writes none", () => {
  assert.equal(restoreLabel("conversation", 2), "Restore");
  assert.equal(restoreLabel("files", 0), "Restore Files");
  assert.equal(restoreLabel("files", 1), "Restore 1 File");
  assert.equal(restoreLabel("both", 2), "Restore with 2 Files");
});

test("a valid request of a page is read; any other restores no file", () => {
  assert.deepEqual(["both", "all", null].map(readScope), ["both", "conversation", "conversation"]);
  assert.deepEqual(readPaths(["a.py", 1, null]), ["a.py"]);
  assert.deepEqual(readPaths("a.py"), []);
});

test("the address of a changed file names it, and other fragments name none", () => {
  const file = { sessionId: "s1", uri: "a b/#.py", turnId: "t2", afterTurnId: null };

  assert.deepEqual(readShownFile(shownFileText(file)), file);
  for (const text of ["", "{}", "null", '["s1"]', '["s1","a.py",1,null]']) {
    assert.equal(readShownFile(text), null);
  }
});
