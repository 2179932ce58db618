/** Tests patches by file, the ends of outputs, and a session's files as of a turn. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileChange } from "../../extension/src/client/protocol.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import { fileRows } from "../../extension/src/page/model/changedFiles.ts";
import { foldedOutput, readPatch } from "../../extension/src/page/model/patches.ts";

const PATCH = `cd shop && apply_patch <<'EOF'
*** Begin Patch
*** Add File: notes.md
+# Notes
+
*** Update File: src/old.py
*** Move to: src/new.py
@@ def total():
 import os
-price = 1
+price = 2
+tax = 0.19
*** End of File
*** Delete File: gone.py
*** End Patch
EOF`;

test("a patch is read by its files, and nothing around them is lost", () => {
  const { files, around } = readPatch(PATCH);

  assert.deepEqual(
    files.map(({ lines, ...file }) => ({ ...file, lines: lines.length })),
    [
      { path: "notes.md", movedTo: null, kind: "A", added: 2, removed: 0, lines: 2 },
      { path: "src/old.py", movedTo: "src/new.py", kind: "M", added: 2, removed: 1, lines: 5 },
      { path: "gone.py", movedTo: null, kind: "D", added: 0, removed: 0, lines: 0 },
    ],
  );
  assert.deepEqual(
    files[1]?.lines.map(({ kind }) => kind),
    ["head", "", "goes", "comes", "comes"],
  );
  assert.equal(around, "cd shop && apply_patch <<'EOF'\nEOF");
  assert.equal(readPatch(PATCH.replace("cd shop && ", "")).around, "", "the shell says no more");
});

test("a new file recorded by Codex shows its content as added lines", () => {
  const recorded =
    "*** Add File: /p/a.md\n# Title\n- item\n\n*** Update File: /p/b.py\n@@ -1 +1 @@\n-x\n+y\n";

  const [made, changed] = readPatch(recorded).files;

  assert.deepEqual([made?.added, made?.removed], [2, 0]);
  assert.deepEqual(
    made?.lines.map(({ text }) => text),
    ["+# Title", "+- item"],
  );
  assert.deepEqual([changed?.added, changed?.removed], [1, 1]);
});

test("text outside any file is shown around the patch", () => {
  assert.deepEqual(readPatch("*** Begin Patch\n***"), { files: [], around: "***" });
});

test("a patch of many lines is read at once", () => {
  const text = `*** Add File: a\n${"+x\n".repeat(200_000)}${"*** Delete File: b\n".repeat(20_000)}`;
  const start = performance.now();

  assert.equal(readPatch(text).files.length, 20_001);
  assert.ok(performance.now() - start < 1_000);
});

test("a long output is folded to its first and last lines, a short one is not", () => {
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at}`);

  assert.deepEqual(foldedOutput(`${lines.join("\n")}\n`), {
    first: "line 0\nline 1\nline 2",
    left: 34,
    last: "line 37\nline 38\nline 39",
  });
  assert.equal(foldedOutput(`${lines.slice(0, 8).join("\n")}\n`), null);
  const wide = foldedOutput("x".repeat(5_000));
  assert.equal(wide?.first.length, 300);
  assert.deepEqual([wide?.left, wide?.last], [0, ""]);
});

const FILE: FileChange = {
  ...{ uri: "src/shop/a.py", kind: "changed", movedFrom: null, movedTo: null, putBack: null },
  ...{ added: 5, removed: 2, turns: [2, 4], seenIn: 4, now: "changed" },
  ...{ before: null, after: null, patches: [] },
};

test("the files of a session are sorted by name, with their changes", () => {
  const [changed, created, moved] = fileRows(
    [
      FILE,
      { ...FILE, uri: "b.md", kind: "created", turns: [1], now: "same" },
      { ...FILE, uri: "c.py", kind: "moved", movedFrom: "old.py", now: "gone" },
    ],
    null,
  );

  assert.deepEqual(changed, {
    ...{ uri: "src/shop/a.py", name: "a.py", folder: "src/shop/", kind: "M" },
    ...{ lines: { added: 5, removed: 2 }, about: "turns 2, 4 · changed since", isOfTurn: false },
  });
  assert.deepEqual([created?.kind, created?.about, created?.folder], ["A", "turn 1", ""]);
  assert.equal(moved?.about, "turns 2, 4 · from old.py · gone since");
});

test("the files at a turn are those changed by then, with the turn's own first", () => {
  const files = [
    { ...FILE, uri: "early.py", turns: [1] },
    { ...FILE, uri: "both.py", turns: [2, 4] },
    { ...FILE, uri: "late.py", turns: [3] },
  ];

  const rows = fileRows(files, 2);

  assert.deepEqual(
    rows.map(({ uri, lines, about, isOfTurn }) => [uri, lines?.added ?? null, about, isOfTurn]),
    [
      ["both.py", null, "turn 2", true], // its lines differ from the current file
      ["early.py", 5, "turn 1 · changed since", false],
    ],
  );
});

test("a page asks for the diff of a file, in a turn or in all of the session", () => {
  for (const turnId of ["t1", null]) {
    const asked = { kind: "change", uri: "a.py", turnId };
    assert.deepEqual(fromPage(asked), asked);
  }
  assert.equal(fromPage({ kind: "change", uri: "a.py" }), null);
});
