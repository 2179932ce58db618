import assert from "node:assert/strict";
import { test } from "node:test";
import type { Imported } from "../../extension/src/client/protocol.ts";
import { countWords, importText, packName } from "../../extension/src/packs/model/texts.ts";
import { session } from "./values.ts";

const would: Imported = {
  operationId: null,
  sessionId: null,
  sourceSessionId: "s1",
  name: "The shop\u202e",
  cwd: "/home/dev/shop",
  importedAt: null,
  digest: "sha256:00",
  counts: {
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
  },
  leftBehind: [{ reason: "missing_files", count: 2, message: "files are not\nhere" }],
  handoff: "[HOW TO USE]\n\n- [ ] Measure it\u001b[2J\n  - deeper",
  handoffTokens: 90,
  resume: null,
  dryRun: true,
};

test("all text that a model will get from a pack is shown before the import", () => {
  assert.equal(
    importText(would),
    [
      "Pack: The shop",
      "From the session s1",
      "For the folder /home/dev/shop",
      "In it: the checkpoint, 6 turns, 4 plan steps, 2 notes, " +
        "3 file references, 2 mode changes, 5 artifacts, 1 marker",
      "2: files are not here",
      "",
      "What a model will be told (about 90 tokens):",
      "",
      "[HOW TO USE]",
      "",
      "- [ ] Measure it [2J",
      "  - deeper",
      "",
    ].join("\n"),
  );
});

test("single items of a pack are in the singular, and pins appear only if there are some", () => {
  const names = ["turns", "planSteps", "notes", "fileReferences", "modes", "artifacts", "markers"];
  const ones = Object.fromEntries(names.map((name) => [name, 1]));

  assert.equal(
    countWords({ ...would.counts, ...ones, pins: 1 }),
    "the checkpoint, 1 turn, 1 plan step, 1 note, " +
      "1 file reference, 1 mode change, 1 artifact, 1 marker, 1 pin",
  );
  assert.doesNotMatch(countWords({ ...would.counts, turns: 0 }), /\b0 /);
});

test("a pack is named after its session, without any path syntax", () => {
  const name = packName(session({ named: true, title: "../../etc/passwd: the shop" }));

  assert.match(name, /\.pack\.json$/);
  assert.ok(!/[/\\:]/.test(name), name);
});
