/** Tests the sides of a file's diff: verified whole texts, else the patches' lines. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileChange } from "../../extension/src/client/protocol.ts";
import { excerpts, sidesOf } from "../../extension/src/page/model/changes.ts";

const PATCH = { ref: "#9", turn: 2, text: "@@ -1,2 +1,2 @@ def a():\n-x = 1\n+x = 2\n y" };
const FILE: FileChange = {
  ...{
    uri: "a.py",
    kind: "changed",
    movedFrom: null,
    movedTo: null,
    added: 1,
    removed: 1,
    turns: [2],
    putBack: null,
  },
  ...{ seenIn: 2, now: "same", before: "x = 1\ny\n", after: "x = 2\ny\n", patches: [PATCH] },
};

test("two proved texts are the sides of a diff", () => {
  assert.deepEqual(sidesOf(FILE), { before: FILE.before, after: FILE.after, about: "" });
});

test("without a proof the sides are the removed and the added lines of patches, and say so", () => {
  const { about, before, after } = sidesOf({ ...FILE, before: null });

  assert.equal(about, " (from patches)");
  assert.equal(before, "──── turn 2\n⋯ def a():\nx = 1\ny\n");
  assert.equal(after, "──── turn 2\n⋯ def a():\nx = 2\ny\n");
});

test("with several patches no line of one is equal to a line of another", () => {
  const patch = (turn: number, text: string) => ({ ref: `#${turn}`, turn, text });
  const { before, after } = excerpts([
    patch(5, "@@\n a:\n+  b: 1\n+\n+  c: 1"),
    patch(12, "@@\n a:\n-  b: 1\n+  b: 2\n \n   c: 1"),
    patch(12, "@@\n a:\n-  b: 2\n+  b: 3"),
  ]);

  assert.equal(
    after,
    [
      ...["──── turn 5", "   5 │ ⋯", "   5 │ a:", "   5 │   b: 1", "   5 │", "   5 │   c: 1", ""],
      ...["──── turn 12", "  12 │ ⋯", "  12 │ a:", "  12 │   b: 2", "  12 │", "  12 │   c: 1", ""],
      ...["──── turn 12.2", "12.2 │ ⋯", "12.2 │ a:", "12.2 │   b: 3", ""],
    ].join("\n"),
  );
  const partsOf = (side: string) => side.split(/^──── .*\n/m).slice(1);
  for (const [place, part] of partsOf(before).entries()) {
    const others = partsOf(after).filter((_, at) => at !== place);
    const lines = new Set(others.flatMap((other) => other.split("\n")).filter(Boolean));
    assert.deepEqual(
      part.split("\n").filter((line) => lines.has(line)),
      [],
    );
  }
});

test("a change without a patch is named, and text of a patch never controls the editor", () => {
  const told = [
    { ref: "#9", turn: null, text: null },
    { ref: "#11", turn: 3, text: "+a\u202eb\u001b[2J" },
  ];
  const { before, after } = excerpts(told);

  assert.match(before, /^#9\n#9 │ \(Changed by a command\. The session does not record how\.\)\n/);
  assert.match(after, /turn 3\n 3 │ a b \[2J\n$/);
});

test("a file changed only by commands has two different sides", () => {
  const patches = [{ ref: "#9", turn: 2, text: null }];
  const { before, after, about } = sidesOf({ ...FILE, before: null, patches });

  assert.equal(before, "");
  assert.match(after, /^\(Changed by a command\. The session does not record how\.\)$/);
  assert.equal(about, " (text not known)");
});
