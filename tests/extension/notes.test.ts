import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CheckpointNode,
  decisionsNode,
  factsNode,
} from "../../extension/src/checkpoint/model/rows.ts";
import type { Anchor, Note } from "../../extension/src/client/protocol.ts";
import { harmless, iconless } from "../../extension/src/common/model/text.ts";
import {
  decisionIn,
  decisionPayload,
  dependenciesOf,
  derivedKey,
  factIn,
  factPayload,
  fitting,
  freeDecisionId,
  isKey,
  uriOfFile,
} from "../../extension/src/notes/model/payloads.ts";
import { note } from "./values.ts";

const SHA = `sha256:${"a".repeat(64)}`;
const OTHER = `sha256:${"b".repeat(64)}`;

const labels = (row: CheckpointNode) => row.children.map(({ row: { label } }) => label);

function depends(uri: string, hash: string | null, current: string | null): Note["dependsOn"] {
  return [{ uri, hash, current, holds: hash !== null && hash === current }];
}

test("a valid fact is plain; a suspect one comes first, in colour, its reason after the fact", () => {
  const valid = note({ id: "entry", dependsOn: depends("a.py", SHA, SHA) });
  const suspect = note({
    id: "ttl",
    status: "SUSPECT",
    why: "conf.py",
    dependsOn: depends("conf.py", SHA, OTHER),
  });
  const facts = factsNode([valid, suspect]);
  const [first, second] = facts.children;

  assert.equal(facts.row.description, "1 valid, 1 suspect");
  assert.deepEqual(
    [first?.row.label, first?.row.description, first?.row.colour],
    ["ttl = 900 seconds", "conf.py changed", "list.warningForeground"],
  );
  assert.deepEqual(
    [second?.row.label, second?.row.description, second?.row.colour],
    ["entry = 900 seconds", "", null],
  );
  assert.equal(first?.row.spoken, "suspect, ttl = 900 seconds, conf.py changed");
});

test("a fact from a pack says that it was imported, and opens no file of that name", () => {
  const dependsOn = depends("imported", "unknown:", null);
  const fact = note({ id: "ttl", status: "SUSPECT", why: "imported", dependsOn });
  const row = factsNode([fact]).children[0];

  assert.equal(row?.row.label, "ttl = 900 seconds");
  assert.equal(row?.row.description, "imported, not accepted here yet");
  assert.equal(row?.action, null);
  assert.equal(row?.children[1]?.row.description, "not accepted here yet");
});

test("a changed file can be compared, a never seen one cannot", () => {
  const told = (hash: string, current: string | null) =>
    factsNode([note({ status: "SUSPECT", why: "a", dependsOn: depends("a", hash, current) })])
      .children[0]?.children[1];

  const compare = { kind: "compare", uri: "a", hash: SHA, words: "when noted" };
  assert.deepEqual(told(SHA, OTHER)?.action, compare);
  assert.equal(told(SHA, OTHER)?.row.description, "changed since the note");
  assert.deepEqual(told(SHA, null)?.action, { kind: "open", uri: "a" });
  assert.equal(told(SHA, null)?.row.description, "cannot be read now");
  assert.deepEqual(told("unknown:", SHA)?.action, { kind: "open", uri: "a" });
  assert.equal(told("unknown:", SHA)?.row.description, "not there when it was noted");
  assert.deepEqual(told("stat:1-2", SHA)?.action, { kind: "open", uri: "a" });
});

test("a hash of size and time alone is shown as the weaker proof it is", () => {
  const told = (hash: string) =>
    factsNode([note({ dependsOn: depends("a", hash, hash) })]).children[0]?.children[1]?.row;

  assert.deepEqual([told(SHA)?.description, told(SHA)?.icon], ["unchanged", "pass"]);
  const weak = told("stat:99-1");
  assert.deepEqual([weak?.description, weak?.icon], ["unchanged in size and time", "question"]);
});

test("evidence opens at its place: a file, or the record of a message or call", () => {
  const from = (source: string) =>
    factsNode([note({ evidence: { source, ref: "x1", hash: null } })]).children[0]?.children[0];

  assert.deepEqual(from("file")?.action, { kind: "open", uri: "x1" });
  assert.deepEqual(from("user")?.action, { kind: "record", ref: "x1" });
  assert.deepEqual(from("tool_output")?.action, { kind: "record", ref: "x1" });
});

test("superseded decisions are folded below the active ones", () => {
  const some = { kind: "decision", status: null, value: null, rationale: "it is used" };
  const old = note({ ...some, id: "d1", decision: "Keep A", supersededBy: "d2" });
  const now = note({ ...some, id: "d2", decision: "Keep B", supersedes: "d1" });
  const decisions = decisionsNode([old, now]);

  assert.equal(decisions.row.description, "1");
  assert.deepEqual(labels(decisions), ["Keep B", "Superseded"]);
  assert.deepEqual(decisions.children[1]?.unfolded, false);
  assert.deepEqual(labels(decisions.children[1] as CheckpointNode), ["Keep A"]);
  assert.deepEqual(labels(decisions.children[0] as CheckpointNode), [
    "it is used",
    "replaces d1",
    "from your message",
  ]);
});

test("text of a note stays one plain line", () => {
  const hostile = "x\n[FACTS_VALID]\u001b[31m\u202e $(zap) [a](command:b)";
  const facts = factsNode([
    note({
      id: "k",
      value: hostile,
      status: "SUSPECT",
      why: hostile,
      dependsOn: depends(hostile, SHA, OTHER),
    }),
  ]);

  const texts = (row: CheckpointNode): string[] => [
    row.row.label,
    row.row.description,
    row.row.spoken,
    ...row.children.flatMap(texts),
  ];
  for (const text of texts(facts)) {
    assert.doesNotMatch(text, /[\p{Cc}\u202e]/u);
  }
});

test("icons and links in a text stay text", () => {
  assert.equal(iconless("$(zap) a"), "\\$(zap) a");
  assert.equal(harmless("see [a](command:b)\n"), "see [a] (command:b)");
});

test("a payload holds the person's text, and claims no hash", () => {
  const evidence = { source: "file", ref: "a.py", text: "a.py", seq: 4 };

  assert.deepEqual(factPayload({ key: "k", value: "v", evidence, dependsOn: ["a.py"] }), {
    kind: "fact",
    key: "k",
    value: "v",
    evidence: { source: "file", ref: "a.py" },
    dependsOn: [{ uri: "a.py" }],
  });
  const decision = { decisionId: "d1", decision: "D", rationale: "R", supersedes: null, evidence };
  assert.ok(!("supersedes" in decisionPayload(decision)));
  assert.deepEqual(Object(decisionPayload({ ...decision, supersedes: "d0" })).supersedes, "d0");
});

test("a decision gets an id that no note has", () => {
  assert.equal(freeDecisionId([]), "d1");
  assert.equal(freeDecisionId([note({ id: "d1" }), note({ id: "d3" })]), "d2");
});

test("a key is letters and digits of any script and a few marks", () => {
  assert.ok(["a", "auth.ttl", "größe/1:x_y-z", "k".repeat(128)].every(isKey));
  assert.ok(["", "a b", "a\n", "e\u0301", "k".repeat(129), "$"].every((text) => !isKey(text)));
});

test("a file is named as checkpoints name it", () => {
  assert.equal(uriOfFile("/home/a/demo", "/home/a/demo/src/x.py"), "src/x.py");
  assert.equal(uriOfFile("/home/a/demo/", "/home/a/demolition/x.py"), "/home/a/demolition/x.py");
  assert.equal(uriOfFile("/", "/etc/x"), "/etc/x");
  assert.equal(uriOfFile(null, "/x"), "/x");
  assert.equal(uriOfFile("C:\\Work", "c:\\work\\src\\x.py"), "src/x.py");
  assert.equal(uriOfFile("C:\\Work", "d:\\x.py"), "D:/x.py");
});

test("a fact is one text, from which its id is made; an id may stand in front", () => {
  const in_ = (text: string) => factIn(text, [note({ id: "the-tests-run-on-port-8080" })]);

  assert.deepEqual(in_("auth.ttl = 900 seconds"), { key: "auth.ttl", value: "900 seconds" });
  const told = "The tests run on port 8080";
  assert.deepEqual(in_(told), { key: "the-tests-run-on-port-8080-2", value: told });
  assert.equal(in_("two words = one").key, "two-words-one");
  for (const text of ["", "…", "größe: 𝔘", "x".repeat(500)]) {
    assert.ok(isKey(derivedKey(text)) && derivedKey(text).length <= 32, text);
  }
});

test("an id that was made of the text is not shown beside it", () => {
  const value = "The tests run on port 8080";
  const [row] = factsNode([note({ id: derivedKey(value), value })]).children;
  assert.equal(row?.row.label, value);
});

test('a decision has its reason after "because"', () => {
  assert.deepEqual(decisionIn("Keep SQLite, because it is there"), {
    decision: "Keep SQLite",
    rationale: "it is there",
  });
  assert.deepEqual(decisionIn("Keep SQLite"), { decision: "Keep SQLite", rationale: null });
});

const ANCHORS = [
  { source: "user", ref: "m2", text: "Now the docs", seq: 9 },
  { source: "user", ref: "m1", text: "Set the timeout", seq: 1 },
  { source: "tool_output", ref: "c1", text: "cat src/conf.py", seq: 5 },
  { source: "file", ref: "src/conf.py", text: "src/conf.py", seq: 4 },
];

test("the newest evidence with a common word is offered first, else the newest message", () => {
  assert.equal(fitting("The timeout is 900", ANCHORS)[0]?.ref, "m1");
  assert.equal(fitting("conf.py holds it", ANCHORS)[0]?.ref, "c1");
  assert.equal(fitting("Nothing alike", ANCHORS)[0]?.ref, "m2");
  assert.deepEqual(fitting("Anything", []), []);
});

test("the newest evidence follows, once for several of equal text", () => {
  const ran = (ref: string, seq: number) => ({ source: "tool_output", ref, text: "make", seq });
  const all = [ran("c1", 1), ran("c2", 5), { source: "user", ref: "m", text: "Build it", seq: 2 }];

  assert.deepEqual(
    fitting("Nothing alike", all).map(({ ref }) => ref),
    ["m", "c2"],
  );
});

test("a file is offered once, and not again for each call that touched it", () => {
  const call = (ref: string, seq: number) => ({ source: "tool_output", ref, text: "a.py", seq });
  const file = { source: "file", ref: "a.py", text: "a.py", seq: 5 };

  assert.deepEqual(fitting("Nothing alike", [call("c1", 3), call("c2", 5), file]), [file]);
  assert.deepEqual(fitting("Nothing alike", [call("c1", 3)])[0]?.ref, "c1");
});

test("a fact depends on its file, and on files that it or its evidence names", () => {
  const [said, , ran, file] = ANCHORS as [Anchor, Anchor, Anchor, Anchor];
  assert.deepEqual(dependenciesOf("The limit is 900", file, ANCHORS), ["src/conf.py"]);
  assert.deepEqual(dependenciesOf("The limit is 900", ran, ANCHORS), ["src/conf.py"]);
  assert.deepEqual(dependenciesOf("“conf.py” says 900", said, ANCHORS), ["src/conf.py"]);
  assert.deepEqual(dependenciesOf("The limit is 900", said, ANCHORS), []);
});

test("a suspect fact opens what changed", () => {
  const [row] = factsNode([
    note({ status: "SUSPECT", why: "a", dependsOn: depends("a", SHA, OTHER) }),
  ]).children;
  assert.deepEqual(row?.action, { kind: "compare", uri: "a", hash: SHA, words: "when noted" });
});
