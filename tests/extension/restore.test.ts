import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { PackLine, RestoreEntry } from "../../extension/src/client/protocol.ts";
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
  assert.equal(sizeText(12_410, 258_400), "12,410 of 258,400 tokens (4%)"); // as in its tree row
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

test("the parsers of a conversation are in the second script of the page", () => {
  const folder = "extension/src/webview";
  const second = ["parsers.ts", "languages.ts"];
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".ts"))) {
    const parsed =
      /^(?:import|export) (?!type ).*from "(?:[^.].*|.*\/markdown\.ts|\.\/languages\.ts)";/m;
    const source = readFileSync(join(folder, name), "utf8").replaceAll("./markdown.ts", "");
    assert.equal(parsed.test(source), second.includes(name), name);
  }
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
