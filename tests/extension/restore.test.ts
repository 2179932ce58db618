import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type {
  PackLine,
  RestoreDetails,
  RestoreEntry,
} from "../../extension/src/client/protocol.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import { localTime, utcTime } from "../../extension/src/common/model/text.ts";
import {
  costOf,
  cutAt,
  cutText,
  itemName,
  leftApart,
  modeAbout,
  modeLabel,
  nameOf,
  notice,
  readOptions,
  restoreChoices,
  shareOf,
  sizeText,
  sliderText,
} from "../../extension/src/restore/model/preview.ts";
import { detailSections, type Section } from "../../extension/src/restore/model/report.ts";

const HOSTILE = "\u001b[31m<script>x</script>\u202e [a](command:b) $(trash)\n";

function line(text: string, tokens: number, id: string | null = text): PackLine {
  return { text, part: id === null ? null : "notes", id, tokens };
}

const LINES = [
  line("[TITLE]", 5, null),
  line("", 6, null),
  line("[TASK]", 8, null),
  line("- one", 10),
  line("- two", 14),
  line("", 15, null),
  line("[PLAN]", 17, null),
  line("- three", 20),
];

function entry(some: Partial<RestoreEntry>): RestoreEntry {
  return {
    operationId: "o",
    sessionId: "b",
    sourceSessionId: "s",
    checkpointId: "c1",
    sourceTurn: { sessionId: "s", turnId: "t" },
    label: HOSTILE,
    mode: "hard",
    restoredAt: "2026-11-21T22:56:32.790Z",
    contextReset: true,
    branchAvailable: true,
    sourceAvailable: true,
    ...some,
  };
}

test("a budget takes the lines that fit, and names the first omitted item", () => {
  for (const [budget, lines, included, next] of [
    [0, 0, 0, "- one"],
    [9, 3, 0, "- one"],
    [10, 4, 1, "- two"],
    [19, 7, 2, "- three"],
    [20, 8, 3, undefined],
    [8000, 8, 3, undefined],
  ] as const) {
    const cut = cutAt(LINES, budget);
    assert.deepEqual([cut.lines, cut.included, cut.next?.text], [lines, included, next]);
    assert.equal(cut.included + cut.deferred, 3);
    assert.ok(cut.tokens <= budget);
  }
  assert.equal(costOf(LINES), 20);
  assert.equal(costOf([]), 0);
});

test("the outcome of a budget is a sentence, and names the budget for the next item", () => {
  assert.equal(
    cutText(cutAt(LINES, 12), 12),
    "Items in the pack: 1 of 3, for 10 tokens. 2 more tokens add the next one.",
  );
  assert.equal(
    cutText(cutAt(LINES, 50), 50),
    "Items in the pack: 3 of 3, for 20 tokens. All of them fit.",
  );
  assert.equal(sliderText(cutAt(LINES, 12), 12), "12 tokens, 1 of 3 items");
});

test("an item that the budget left out before there were lines counts as left out", () => {
  const item = (part: string, id: string, reason: string) => ({ part, id, reason });
  const digest = item("digest", "digest", "budget");
  const deferred = [digest, item("notes", "step:s1", "filtered")];

  assert.equal(leftApart({ lines: LINES, deferred }), 1);
  assert.equal(cutText(cutAt(LINES, 50, 1), 50), "Items in the pack: 3 of 4, for 20 tokens.");
});

test("a budget of one and a single item are in the singular", () => {
  assert.match(cutText(cutAt(LINES, 13), 13), / 1 more token adds the next one\.$/);
  assert.equal(sliderText(cutAt(LINES.slice(0, 4), 1), 1), "1 token, 0 of 1 item");
  assert.equal(sizeText(1, null), "1 token");
});

test("the two modes have their exact names, and promise no more than they do", () => {
  assert.equal(modeLabel("soft"), "Continue with context");
  assert.equal(modeLabel("hard"), "Reset context for performance");
  assert.match(modeAbout("soft"), /as full as it was/);
  assert.match(modeAbout("hard"), /empty context/i);
});

test("the requests of a page are read strictly", () => {
  const options = { mode: "hard", budget: 40, window: 2, digestTokens: 500, reason: "why" };
  assert.deepEqual(fromPage({ kind: "restore", options, scope: "both", files: ["a.py"] }), {
    ...{ kind: "restore", options, scope: "both", files: ["a.py"] },
  });
  assert.deepEqual(fromPage({ kind: "goTo", sessionId: "s1" }), { kind: "goTo", sessionId: "s1" });
  assert.deepEqual(fromPage({ kind: "again", mode: "hard" }), { kind: "again" });
  for (const value of [null, 1, "ready", {}, { kind: "run" }, { kind: "goTo", sessionId: 1 }]) {
    assert.equal(fromPage(value), null);
  }
  assert.deepEqual(
    readOptions({ mode: "merge", window: 9, digestTokens: 1e9, reason: `a\u0000${HOSTILE}` }),
    {
      mode: "soft",
      budget: null,
      window: 5,
      digestTokens: 32_000,
      reason: "a [31m<script>x</script>  [a](command:b) $(trash)",
    },
  );
});

test("by default the last three messages are included, and no digest", () => {
  const { mode, budget, window, digestTokens } = readOptions({ budget: 1.5 });
  assert.deepEqual([mode, budget, window, digestTokens], ["soft", null, 3, 0]);
});

test("an item of several lines is in the pack when all of them are", () => {
  const lines = [line("- pinned: a.md", 4, "a.md"), line("- | one", 6, "a.md"), line("- b", 8)];
  const counts = (budget: number) => {
    const { included, deferred } = cutAt(lines, budget);
    return [included, deferred];
  };
  assert.deepEqual([3, 4, 6, 8].map(counts), [
    [0, 2],
    [0, 2],
    [1, 1],
    [2, 0],
  ]);
});

test("sizes show how full the window is, and which values are unknown", () => {
  assert.equal(sizeText(87_856, 258_400), "87,856 of 258,400 tokens (34%)");
  assert.equal(sizeText(12_410, 258_400), "12,410 of 258,400 tokens (4%)"); // as in its row
  assert.equal(sizeText(99, 258_400), "99 of 258,400 tokens (less than 1%)");
  assert.equal(sizeText(99, null), "99 tokens");
  assert.equal(sizeText(null, 258_400), "not known");
  assert.deepEqual([shareOf(50, 100), shareOf(500, 100), shareOf(null, 100)], [0.5, 1, null]);
});

test("the notice is one line without links", () => {
  const text = notice({ headline: `Restored “${HOSTILE}”.`, carried: "Carried over: 1 note." });
  assert.doesNotMatch(text, /\]\(|\p{Cc}|\p{Bidi_Control}/u);
  assert.match(text, /Carried over: 1 note\.$/);
  assert.equal(nameOf("\u001b", "c1"), "c1");
});

test("a moment is shown in the zone of the reader, and sent in UTC", () => {
  const stamp = "2026-11-21T22:56:32.790Z";
  assert.match(localTime(stamp, "en", "Europe/Berlin"), /^Nov 21, 2026, 11:56:32\sPM$/);
  assert.match(localTime(stamp, "en", "Asia/Tokyo"), /^Nov 22, 2026, 7:56:32\sAM$/);
  assert.equal(utcTime(stamp), "2026-11-21 22:56:32 UTC");
  assert.equal(localTime("soon", "en"), "soon");
});

function details(some: Partial<RestoreDetails> = {}): RestoreDetails {
  return {
    operationId: "o1",
    sessionId: "branch-2",
    sourceSessionId: "branch-1",
    checkpointId: "c2",
    sourceTurn: { sessionId: "branch-1", turnId: "t2" },
    label: "before the tests",
    markedAt: "2026-11-21T22:00:00.000Z",
    mode: "hard",
    restoredAt: "2026-11-21T22:56:32.790Z",
    contextReset: true,
    reason: "requested by the user",
    semantics: 1,
    chain: [
      {
        sessionId: "branch-1",
        sourceTurn: { sessionId: "the-first", turnId: "t1" },
        checkpointId: "c1",
      },
    ],
    modes: [{ seq: 1, mode: "default", turnId: "t1" }],
    references: {
      files: [
        {
          uri: "a.py",
          hash: `sha256:${"a".repeat(64)}`,
          size: 3,
          touched: true,
          sentToModel: false,
        },
      ],
      chunks: [{ chunkId: "a.py#L1-L2", uri: "a.py", start: 1, end: 2, hash: null }],
      system: [{ kind: "patch", id: "call_1", hash: null }],
    },
    pinned: [{ uri: "b.py", start: null, end: null, hash: null }],
    included: [{ part: "notes", id: "task" }],
    deferred: [
      { part: "files", id: "a.py", reason: "budget" },
      { part: "pinned", id: "b.py", reason: "bound" },
      { part: "notes", id: "step:s1", reason: "filtered" },
      { part: "pinned", id: "c.py", reason: "missing" },
    ],
    warnings: [{ code: "drift", count: 1, message: "1 file changed", files: ["a.py"] }],
    tokensBefore: 190_000,
    tokensAfter: 700,
    contextWindow: 258_400,
    caps: { maxFactsValid: 32 },
    windows: { source: "w0", first: "w1", current: "w2" },
    drift: [JSON.parse('{"uri":"a.py","then":"sha256:1","now":"sha256:2"}')],
    missing: [],
    fallbacks: [],
    state: {
      task: { text: "Fix it" },
      plan: { steps: [{ id: "s1", text: "Read" }], done: { s1: true } },
      decisions: [{ decisionId: "d1", decision: "Use it" }],
      facts: { port: { value: "8080" } },
    },
    pack: "[SESSION_RESTORE v1]\n",
    packTokens: 99,
    budget: 120,
    headline: "",
    carried: "",
    resume: "codex resume branch-2",
    branchTitle: "The branch",
    branchAvailable: true,
    sourceTitle: null,
    sourceAvailable: false,
    sourceUnchanged: null,
    ...some,
  };
}

function sections(some: Partial<RestoreDetails> = {}, state: unknown = null): Map<string, Section> {
  const told = { kind: "details", details: details(some), lineage: [], state };
  const all = detailSections({ ...told, kind: "details" });
  return new Map(all.map((each) => [each.id, each]));
}

/** Everything that a section shows, as words. */
function words(section: Section | undefined): string {
  return JSON.stringify(section?.body);
}

test("the details name each fallback in its own words", () => {
  const kinds = [
    ...["weak_hash", "file_only_store", "copied_legacy", "copied_compressed"],
    ...["copied_windows", "copied_in_base", "copied_damaged", "earlier_unknown"],
    "of_a_later_version",
  ];
  const fallbacks = kinds.map((fallback) => JSON.parse(JSON.stringify({ fallback, uri: null })));

  const body = sections({ fallbacks }).get("fallbacks")?.body;

  const said = body?.kind === "table" ? body.rows.map(([what]) => what) : [];
  assert.equal(new Set(said).size, kinds.length);
  assert.equal(said.at(-1), "of_a_later_version");
});

test("a step in the details is shown by its text, an unknown one by its id", () => {
  const item = (state: RestoreDetails["state"]) =>
    words(sections({ state }).get("unquoted")).includes("Step s1");

  assert.equal(item({ plan: { steps: [{ id: "s1", text: "Read" }] } }), false);
  assert.equal(item(null), true);
  assert.ok(words(sections().get("unquoted")).includes('"Read"'));
});

test("the details have every part, each with its own content", () => {
  const found = sections();
  for (const [id, ...shown] of [
    ["origin", "The branch", "branch-1", "requested by the user"],
    ["ids", "c2", "t2", "o1", "w0", "w1", "w2"],
    ["lineage", "branch-2", "branch-1", "restored", "the-first", "the original session"],
    ["carried", "1 in the pack, 0 left out", "0 in the pack, 1 left out"],
    ["reset", "The original session keeps its own."],
    ["pack", "SESSION_RESTORE"],
    ["included", "task"],
    ["deferred", "no tokens left"],
    ["shortened", "shortened: longer than it may be"],
    ["unquoted", "done, superseded by another, or never quoted", "not there"],
    ["state", "Fix it"],
    ["plan", "done", "Read"],
    ["decisions", "d1", "Use it"],
    ["facts", "port", "8080"],
    ["modes", "default"],
    ["files", "a.py", "yes", "no"],
    ["chunks", "1 to 2"],
    ["system", "patch", "call_1"],
    ["pinned", "b.py", "all"],
    ["drift", "a.py"],
    ["caps", "maxFactsValid", "32"],
  ] as const) {
    for (const word of shown) {
      assert.ok(words(found.get(id)).includes(word), `${id}: ${word}`);
    }
  }
  assert.equal(found.has("missing"), false, "what there is none of is not there");
});

test("an ancestor not made by a restore is shown with its origin", () => {
  const above = {
    sessionId: "branch-1",
    sourceTurn: { sessionId: "the-first", turnId: null },
    checkpointId: null,
    kind: "compaction",
  };
  const found = sections({ chain: [above] });
  assert.match(words(found.get("lineage")), /branch-1.*compacted.*the-first/);
  assert.doesNotMatch(words(found.get("lineage")), /"c2"|"t2"/, "ids stand below");
  assert.match(words(found.get("ids")), /branch-1.*the-first/);
});

test("a missing session is named without a link", () => {
  const origin = words(sections().get("origin"));
  assert.match(origin, /"id":"branch-1","name":"branch-1","there":false/);
  assert.match(origin, /"id":"branch-2","name":"The branch","there":true/);
});

test("a soft restore claims no reset and has no pack", () => {
  const soft = {
    mode: "soft",
    contextReset: false,
    pack: null,
    budget: null,
    state: null,
  } as const;
  const found = sections(soft, { task: { text: "As it was" } });
  assert.match(words(found.get("reset")), /Nothing\. The context was kept\./);
  assert.equal(found.has("pack"), false);
  assert.match(words(found.get("state")), /As it was/);
});

test("the pack of a missing branch is mentioned, not shown", () => {
  assert.match(words(sections({ pack: null }).get("pack")), /which is gone or has changed/);
});

test("a damaged record is shown as far as it is valid", () => {
  const broken = {
    chain: [{}],
    references: { files: [1, null, {}], chunks: "no" },
    windows: {},
    state: { plan: 3, facts: [], decisions: {} },
  } as unknown as Partial<RestoreDetails>;
  assert.ok(sections(broken).size > 5);
});

test("restores are chosen from a list, the newest first, gone ends named", () => {
  const restores = [
    entry({ operationId: "o1" }),
    entry({ operationId: "o2", branchAvailable: false }),
  ];
  const choices = restoreChoices(restores, utcTime);
  assert.deepEqual(
    choices.map(({ operationId, detail }) => [operationId, detail]),
    [
      ["o2", "Reset context for performance · the branch is gone"],
      ["o1", "Reset context for performance"],
    ],
  );
  assert.doesNotMatch(choices[0]?.label ?? "", /\p{Cc}|\p{Bidi_Control}|(?<!\\)\$\(/u);
  assert.equal(choices[0]?.description, "2026-11-21 22:56:32 UTC");
});

test("a page sets text and never markup, and runs nothing but its own script", () => {
  const folder = "extension/src/webview";
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".ts"))) {
    const source = readFileSync(join(folder, name), "utf8");
    assert.doesNotMatch(source, /HTML\b|document\.write|\beval\b|new Function|DOMParser/, name);
    assert.doesNotMatch(source, /from "(?:vscode|node:)|https?:/, name);
  }
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".css"))) {
    const style = readFileSync(join(folder, name), "utf8");
    assert.doesNotMatch(style, /url\(|@import|#[0-9a-f]{6}\b/, name);
  }
  const host = readFileSync("extension/src/common/panel.ts", "utf8");
  assert.match(host, /"default-src 'none'"/);
  assert.doesNotMatch(/const policy = \[.*?\]/s.exec(host)?.[0] ?? "*", /unsafe|\*|https?:/);
});

test("transferred parts have familiar names", () => {
  const name = (part: string, id: string) => itemName({ part, id });

  assert.equal(name("notes", "task"), "The task");
  assert.equal(name("notes", "step:s1"), "Step s1");
  assert.equal(name("notes", "decision:use a queue"), "Decision use a queue");
  assert.equal(name("notes", "fact:build:command"), "Fact build:command");
  assert.equal(name("notes", "of another kind"), "of another kind");
  assert.equal(name("files", "task"), "task");
  assert.equal(name("files", "note:draft.md"), "note:draft.md");
  assert.equal(name("files", "reread:src/a.py"), "Lines to read again of src/a.py");
  assert.equal(name("commands", "command:#56"), "Command #56");
  assert.equal(name("window", "message:#8"), "Message #8");
  assert.equal(name("pinned", "docs/rules.md"), "docs/rules.md");
  assert.equal(name("pinned", "text:2"), "Pinned text 2");
});
