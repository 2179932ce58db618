import assert from "node:assert/strict";
import { test } from "node:test";
import { leftWords, rowWords, writtenWords } from "../../extension/src/model/fileRestores.ts";
import type { RestoredFile } from "../../extension/src/protocol.ts";

function file(path: string, more: Partial<RestoredFile> = {}): RestoredFile {
  const rest = { hashNow: null, hashThen: null, before: null, after: null, why: null };
  const counts = { added: 0, removed: 0, on: true, written: false };
  return { path, state: "restore", proof: "diff", ...rest, ...counts, ...more };
}

test("files that cannot come back are named beside those that can", () => {
  const rows = [
    file("a.py"),
    file("b.py", { state: "same" }),
    file("c.py", { state: "unknown" }),
    file("d.py", { state: "merge" }),
  ];
  const { offered, left } = leftWords({ rows, unnamed: 2 });

  assert.deepEqual(
    offered.map(({ path }) => path),
    ["a.py", "d.py"],
  );
  assert.equal(left, "1 file stays as it is: c.py. 2 commands may have written elsewhere.");
});

test("a row says what is done, how many lines, and how sure that is", () => {
  const row = file("src/$(x)\u202e.py", { added: 2, removed: 1, proof: "context", why: "old" });

  assert.deepEqual(rowWords(row), {
    label: "src/\\$(x) .py",
    description: "restore · +2 −1 · known by its context alone",
    detail: "old",
  });
});

test("what was left is said with its reason", () => {
  const rows = [
    file("a.py", { written: true }),
    file("b.py", { why: "left as it is: it was changed meanwhile" }),
  ];

  assert.equal(writtenWords(rows.slice(0, 1)), "1 file restored.");
  assert.equal(
    writtenWords(rows),
    "1 file restored. Not restored: b.py left as it is: it was changed meanwhile.",
  );
});
