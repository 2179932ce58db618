import assert from "node:assert/strict";
import { test } from "node:test";
import type { PackCounts } from "../../extension/src/client/protocol.ts";
import { countWords, packName } from "../../extension/src/packs/model/texts.ts";
import { session } from "./values.ts";

const counts: PackCounts = {
  sessions: 1,
  turns: 6,
  notes: 2,
  noteEvents: 3,
  planSteps: 4,
  checkpoints: 1,
  fileReferences: 3,
  modes: 2,
  artifacts: 5,
  markers: 1,
  pins: 0,
  lineage: 2,
};

test("single items of a pack are in the singular, and pins appear only if there are some", () => {
  const names = ["turns", "planSteps", "notes", "fileReferences", "modes", "artifacts", "markers"];
  const ones = Object.fromEntries(names.map((name) => [name, 1]));

  assert.equal(
    countWords({ ...counts, ...ones, pins: 1 }),
    "the checkpoint, 1 turn, 1 plan step, 1 note, " +
      "1 file reference, 1 mode change, 1 artifact, 1 marker, 1 pin",
  );
  assert.doesNotMatch(countWords({ ...counts, turns: 0 }), /\b0 /);
});

test("a pack is named after its session, without path syntax or an ellipsis", () => {
  const name = packName(
    session({ named: true, title: "../../etc/passwd: the shop of all suppliers" }),
  );

  assert.match(name, /\.pack\.json$/);
  assert.ok(!/[/\\:…]/.test(name), name);
});
