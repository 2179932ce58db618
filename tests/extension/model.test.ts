import assert from "node:assert/strict";
import { test } from "node:test";
import { type CheckpointNode, checkpointNodes } from "../../extension/src/checkpoint/model/rows.ts";
import { statusOf, whyDown } from "../../extension/src/client/model/status.ts";
import type { RecentArtifact, SessionSummary } from "../../extension/src/client/protocol.ts";
import { artifactPath } from "../../extension/src/common/model/documents.ts";
import { age, ago, cut, meter, plain, subject } from "../../extension/src/common/model/text.ts";
import {
  actionsOf,
  byFolder,
  byTime,
  contextValueOf,
  family,
  folded,
  followedOf,
  hasBelow,
  isPlainId,
  newestFirst,
  partsOf,
  runningOf,
  sessionRow,
  sharedStart,
} from "../../extension/src/sessions/model/rows.ts";
import { checkpoint, note, recent, session, told } from "./values.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");

test("control characters, separators and directions become one space each run", () => {
  assert.equal(plain("a\u001b[31mb\r\n\tc\u202e\u2066d\u009b\u2028e\u007f"), "a [31mb c d e");
  assert.equal(plain("  half a \ud83d pair  "), "half a \ufffd pair");
  assert.equal(plain("größe → ∞ 𝔘"), "größe → ∞ 𝔘");
});

test("a text is cut between code points", () => {
  assert.equal(cut("𝔘𝔫𝔦𝔠", 4), "𝔘𝔫𝔦𝔠");
  assert.equal(cut("𝔘𝔫𝔦𝔠𝔬", 4), "𝔘𝔫𝔦…");
});

test("an age has one unit, and none for an invalid time", () => {
  const ages = ["2026-11-20T11:59:30Z", "2026-11-20T11:01:00Z", "2026-11-19T13:00:00Z"];
  assert.deepEqual(
    ages.map((stamp) => age(stamp, NOW)),
    ["now", "59m", "23h"],
  );
  assert.equal(age("2026-11-10T12:00:00Z", NOW), "10d");
  assert.equal(age("2026-11-20T12:05:00Z", NOW), "now");
  assert.equal(age("yesterday", NOW), "");
});

test("a relative time is a phrase, even for a moment just past or an invalid one", () => {
  const stamps = ["2026-11-20T11:58:00Z", "2026-11-20T11:59:30Z", "yesterday"];
  assert.deepEqual(
    stamps.map((stamp) => ago(stamp, NOW)),
    ["2m ago", "now", ""],
  );
});

test("the meter distinguishes an estimate from a report, and omits unknown values", () => {
  assert.equal(meter(session({ contextTokens: 88_000, contextWindow: 258_400 })), "34%");
  const estimated = { contextTokens: 88_000, contextWindow: 258_400 };
  assert.equal(meter(session({ ...estimated, contextTokensSource: "estimated" })), "~34%");
  assert.equal(meter(session({ contextTokens: null, contextWindow: 258_400 })), "");
  assert.equal(meter(session({ contextTokens: 900_001, contextWindow: 272_000 })), "over");
  assert.equal(meter(session({ contextTokens: 1, contextWindow: 0 })), "");
});

test("a row shows the first request, its age and its level, and the rest in its tooltip", () => {
  const some = { title: "Fix the login", live: true, suspectFacts: 2, contextTokens: 129_200 };
  const row = sessionRow(session({ ...some, task: "And now the tests" }), NOW);

  assert.equal(row.label, "2h  Fix the login");
  assert.deepEqual([row.badge, row.description], ["50", ""]);
  assert.equal(row.spoken, "Fix the login, running, 2 suspect facts, 2h, context 50 percent");
  assert.equal(row.icon, "circle-filled");
  assert.match(row.tooltip, /^Fix the login\nLast message: And now the tests\nState: running, 2 s/);
  assert.match(row.tooltip, /^Context: 129,200 of 258,400 tokens \(50%\), as Codex reported$/m);
  assert.match(row.tooltip, /^Model: gpt-5\.5$/m);
});

test("an editor that cuts a row at its end leaves its age and its level", () => {
  const row = sessionRow(session({ title: "x".repeat(400), contextTokens: 129_200 }), NOW);
  assert.match(row.label, /^2h {2}x/);
  assert.equal(row.badge, "50");
});

test("a session has an arrow only where something below it is known", () => {
  const unread = { compactions: null } as unknown as Partial<SessionSummary>;
  assert.ok(!hasBelow(session(unread)));
  assert.ok(!hasBelow(session({ compactions: 0 })));
  assert.ok(hasBelow(session({ compactions: 1 })));
  assert.ok(hasBelow(session({ ...unread, markers: 1 })));
});

test("a later message does not rename a session, and only the editor cuts its name", () => {
  const before = sessionRow(session({ title: "Fix the login", task: "Fix the login" }), NOW);
  const after = sessionRow(session({ title: "Fix the login", task: "x".repeat(99) }), NOW);
  assert.equal(before.label, after.label);
  const long = "x".repeat(99);
  assert.equal(sessionRow(session({ title: long }), NOW).label, `2h  ${long}`);
});

test("a short first request has the last one beside it, a name of its own has not", () => {
  const name = (some: Partial<SessionSummary>) => subject(session({ title: "continue", ...some }));

  assert.equal(name({ task: "Fix the price list" }), "continue · Fix the price list");
  assert.equal(name({ task: "continue" }), "continue");
  assert.equal(name({ task: "go on" }), "continue");
  assert.equal(name({ task: "Fix the price list", named: true }), "continue");
  assert.equal(name({ title: "Fix the login", task: "Fix the price list" }), "Fix the login");
});

test("below a session with the same title a row shows its last message instead", () => {
  const some = { title: "Review the change", contextTokens: 129_200 };
  const first = session({ ...some, sessionId: "a", task: "And now the docs, all of them" });
  const other = session({ ...some, sessionId: "b", task: some.title });

  const row = sessionRow(first, NOW, 0);
  assert.equal(row.label, "2h  And now the docs, all of them");
  assert.match(row.spoken, /^Review the change, And now the docs, all of them, 2h/);
  assert.equal(sessionRow(other, NOW, 0).label, "2h  Review the change");
});

test("last messages that begin alike are shown from the word before they differ", () => {
  const of = (task: string) => session({ title: "Review the change", task });
  const labels = (...tasks: string[]) => {
    const all = tasks.map(of);
    return all.map((each) => sessionRow(each, NOW, sharedStart(all)).label);
  };

  const parts = [1, 10, 11].map((part) => `Look at part ${part} of the list, please`);
  const shown = ["1 of", "10 of", "11 of"].map((part) => `2h  …part ${part} the list, please`);
  assert.deepEqual(labels(...parts), shown);
  assert.match(sessionRow(of(parts[0] ?? ""), NOW, 8).spoken, /, Look at part 1 of the list, /);
  assert.deepEqual(labels("Go on, a", "Go on, b"), ["2h  Go on, a", "2h  Go on, b"]);
  assert.deepEqual(labels("Look at part 1"), ["2h  Look at part 1"]);
  assert.deepEqual(labels("Look at part 1", "Review the change"), [
    ...["2h  Look at part 1", "2h  Review the change"],
  ]);
  const same = "Look at each of these parts";
  assert.deepEqual(labels(same, same), ["2h  …these parts", "2h  …these parts"]);
  const word = "x".repeat(9_000);
  assert.deepEqual(labels(`${word} 1`, `${word} 2`)[0]?.slice(0, 9), "2h  xxxxx");
});

test("a copy of a session is named as one, unless somebody named it", () => {
  const copy = { title: "Fix the login", forkedFrom: "another" };
  const label = (some: Partial<SessionSummary>) => subject(session({ ...copy, ...some }));
  assert.equal(label({ madeBy: "compaction" }), "Compacted: Fix the login");
  assert.equal(label({ madeBy: "compaction", undone: true }), "Uncompacted: Fix the login");
  assert.equal(label({}), "Fork: Fix the login");
  assert.equal(
    label({ madeBy: "restore", title: "before the cache: Fix" }),
    "before the cache: Fix",
  );
  assert.equal(label({ madeBy: "compaction", named: true }), "Fix the login");
  assert.equal(label({ parentSession: "another" }), "Fix the login");
});

test("a context above its window is shown as over, never above 100 percent", () => {
  const over = session({ contextTokens: 300_000 });
  const row = sessionRow(over, NOW);
  assert.equal(row.badge, "!");
  assert.match(row.spoken, /context over its limit/);
  for (const text of [row.label, row.description, row.spoken, row.tooltip]) {
    assert.doesNotMatch(text, /\b1\d\d ?(%|percent)/);
  }
});

test("a session whose compaction was undone is below its source, until it is used again", () => {
  const source = session({ sessionId: "a" });
  const undone = session({ sessionId: "b", forkedFrom: "a", madeBy: "compaction", undone: true });
  const roots = (...all: SessionSummary[]) => family(all).roots.map(({ sessionId }) => sessionId);

  assert.deepEqual(roots(undone, source), ["a"]);
  assert.deepEqual(family([undone, source]).children.get("a"), [undone]);
  assert.deepEqual(roots({ ...undone, live: true }, source), ["b", "a"]);
  assert.deepEqual(roots(undone), ["b"]);
});

test("values not known yet are not shown", () => {
  const unread = { windows: null, compactions: null, turns: null, suspectFacts: null, seq: null };
  const nothing = { ...unread, contextTokens: null } as unknown as Partial<SessionSummary>;
  const row = sessionRow(session(nothing), NOW);
  assert.deepEqual([row.badge, row.description], ["", ""]);
  assert.doesNotMatch(row.tooltip, /null|Turns|Compactions|Context/);
});

test("a branch made of older records is as old as its file, and comes first", () => {
  const fileTime = "2026-11-20T11:59:30.000Z";
  const made = session({ sessionId: "b", madeBy: "restore", fileTime });
  const codex = session({ sessionId: "a", fileTime });

  assert.match(sessionRow(made, Date.parse(fileTime)).label, /^now /);
  assert.match(sessionRow(codex, Date.parse(fileTime)).label, /^1h /);
  const ids = newestFirst([codex, made]).map(({ sessionId }) => sessionId);
  assert.deepEqual(ids, ["b", "a"]);
});

test("a row whose last record is not read has the time of its file and the first folder", () => {
  const unread = { updatedAt: null, cwd: null } as unknown as Partial<SessionSummary>;
  const some = { ...unread, fileTime: "2026-11-18T12:00:00.000Z", startFolder: "/home/ana/shop" };
  const row = sessionRow(session({ title: "Fix the login", ...some }), NOW);

  assert.equal(row.label, "2d  Fix the login");
  assert.match(row.spoken, /^Fix the login, 2d, /);
  assert.match(row.tooltip, /^Last change: 2d ago$/m);
  assert.match(row.tooltip, /^Folder: \/home\/ana\/shop$/m);
  assert.deepEqual([...byFolder([session(some)]).keys()], ["/home/ana/shop"]);
  assert.deepEqual([...byTime([session(some)], NOW).keys()], ["This Week"]);
});

test("a row says that the work continues in another session", () => {
  const row = sessionRow(session({ continuedBy: "another" }), NOW);
  assert.match(row.spoken, /, continued in a compacted session, /);
});

test("a session that Codex refuses has a warning, the reason, and no offer to resume it", () => {
  const refused = "Codex cannot resume it: a line of its file is not UTF-8";
  const row = sessionRow(session({ refused }), NOW);
  assert.equal(row.icon, "warning");
  assert.match(row.tooltip, /^State: Codex cannot resume it: a line .* UTF-8$/m);
  assert.equal(contextValueOf(session({ refused })), "session refused");
  assert.equal(contextValueOf(session({})), "session");
  const first = (some: Partial<SessionSummary>) => actionsOf(session(some))[0]?.[0];
  assert.equal(first({}), "Resume in Terminal");
  assert.equal(first({ refused }), "Compact Session…");
  assert.equal(first({ archived: true }), "Search Sessions…");
});

test("a row without a title shows the task, and without both says so", () => {
  assert.equal(sessionRow(session({ title: "", task: "What now?" }), NOW).label, "2h  What now?");
  const nothing = { task: " \n", title: null };
  assert.equal(sessionRow(session(nothing), NOW).label, "2h  No message");
  assert.equal(sessionRow(session({ ...nothing, live: true }), NOW).label, "2h  No message yet");
});

test("sessions are listed by day, week and month, and those of other folders by folder", () => {
  const noon = new Date(2026, 10, 20, 12).getTime();
  const hours = [1, 13, 30, 5 * 24, 6 * 24 + 13, 60 * 24 + 1];
  const aged = hours.map((age) =>
    session({ updatedAt: new Date(noon - age * 3_600_000).toISOString(), cwd: `/p/${age % 2}` }),
  );
  const sizes = (groups: ReadonlyMap<string, readonly unknown[]>) =>
    [...groups].map(([name, all]) => `${name} ${all.length}`);

  const recent = ["Today 1", "Yesterday 2", "This Week 1", "Last Week 1"];
  assert.deepEqual(sizes(byTime(aged, noon)), [...recent, "September 2026 1"]);
  assert.deepEqual(sizes(byFolder(aged)), ["/p/1 4", "/p/0 2"]);
});

test("three or more sessions with the same first request are folded below the newest", () => {
  const of = (id: string, title: string, some: Partial<SessionSummary> = {}) =>
    session({ sessionId: id, title, ...some });
  const all = [
    of("a", "Review"),
    of("b", "Review"),
    of("named", "Review", { named: true }),
    of("c", "Review"),
    of("elsewhere", "Review", { cwd: "/other" }),
    of("d", "Fix it"),
    of("e", "Fix it"),
  ];
  const { shown, older } = folded(all);

  assert.deepEqual(
    shown.map(({ sessionId }) => sessionId),
    ["a", "named", "elsewhere", "d", "e"],
  );
  assert.deepEqual(
    older.get("a")?.map(({ sessionId }) => sessionId),
    ["b", "c"],
  );
});

test("sessions without a message are apart, unless there is only one or it runs", () => {
  const of = (sessionId: string, some: Partial<SessionSummary> = {}) =>
    session({ sessionId, title: null, task: null, ...some });
  const ids = (some: readonly SessionSummary[]) => some.map(({ sessionId }) => sessionId);
  const program = of("program", { background: true });
  const asked = of("asked", { title: "Fix it" });

  const { people, withoutMessage, background } = partsOf([
    of("a"),
    asked,
    program,
    of("b", { task: " \n" }),
    of("runs", { live: true }),
  ]);
  assert.deepEqual(ids(people), ["asked", "runs"]);
  assert.deepEqual(ids(withoutMessage), ["a", "b"]);
  assert.deepEqual(ids(background), ["program"]);
  assert.deepEqual(ids(partsOf([of("a"), asked]).people), ["a", "asked"]);
});

test("a compacted session is folded below the one that continues it", () => {
  const old = session({ sessionId: "old", continuedBy: "new" });
  const { roots, children } = family([session({ sessionId: "new" }), old]);
  assert.deepEqual([roots.length, children.get("new")], [1, [old]]);
});

test("text of a rollout stays text", () => {
  const hostile =
    "[click](command:evil) <img src=x onerror=alert(1)> $(zap) \u001b]8;;x\u0007 \u202e";
  const row = sessionRow(session({ title: hostile, task: hostile, model: "m\n\n**x**" }), NOW);

  for (const text of [row.label, row.description, row.spoken, row.tooltip]) {
    assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\u202e]/u);
  }
  assert.equal(typeof row.tooltip, "string");
  assert.doesNotMatch(statusOf({ kind: "ready" }, session({ task: hostile })).text, /zap/);
});

test("subagents are below their parents, orphans and cycles at the top", () => {
  const ids = ["a", "b", "c", "d", "e", "f"];
  const parents: Record<string, string> = { b: "a", c: "b", d: "gone", e: "f", f: "e" };
  const sessions = ids.map((id) => session({ sessionId: id, parentSession: parents[id] ?? null }));
  const { roots, children } = family(sessions);
  const idsOf = (some: readonly SessionSummary[] = []) => some.map((each) => each.sessionId);

  assert.deepEqual(idsOf(roots), ["a", "d", "e", "f"]);
  assert.deepEqual(idsOf(children.get("a")), ["b"]);
  assert.deepEqual(idsOf(children.get("b")), ["c"]);
});

test("the running session is followed, else the newest; a subagent only when alone", () => {
  const newest = session({ sessionId: "newest" });
  const helper = session({ sessionId: "helper", live: true, parentSession: "newest" });
  const running = session({ sessionId: "running", live: true });

  assert.equal(followedOf([helper, newest, running]), running);
  assert.equal(followedOf([helper, newest]), newest);
  assert.equal(followedOf([helper]), helper);
  assert.equal(followedOf([]), null);
  assert.equal(runningOf([newest, helper]), null);
});

test("a session of a program or of Codex itself says so, and is never followed beside a person's", () => {
  const review = session({ sessionId: "r", source: "review", background: true, live: true });
  const mine = session({ sessionId: "mine" });

  assert.match(sessionRow(review, NOW).spoken, /, running, review, /);
  assert.doesNotMatch(sessionRow(mine, NOW).spoken, /cli/);
  assert.equal(followedOf([review, mine]), mine);
  assert.equal(followedOf([review]), review);
  assert.equal(runningOf([review, mine]), null);
});

const NOTES = [
  note({ id: "runner", value: "node:test" }),
  note({ id: "cause", value: "a stale token", status: "SUSPECT" }),
  note({
    kind: "decision",
    id: "d1",
    topic: "api",
    decision: "Keep the interface",
    rationale: "It is used",
  }),
];

test("a checkpoint reads as task, plan, artifacts, facts and decisions", () => {
  const drawn = draw(checkpointNodes(checkpoint, told, NOTES));

  assert.equal(
    drawn,
    `\
target Make the tests pass
checklist Plan | 1 of 2 done
  pass-filled Read the code
  circle-large-outline Fix it
lightbulb Facts | 1 valid, 1 suspect
  warning cause = a stale token | suspect
    account from your message > record
  pass runner = node:test
    account from your message > record
law Decisions | 1
  law Keep the interface | api
    comment It is used
    account from your message > record
files Recent Files | 2
  file auth.ts | src > open
  file big.bin > open
terminal Recent Commands | 1
  terminal npm test > run
`,
  );
});

test("a plan of an earlier turn names the turn at the end of its count", () => {
  const drawn = draw(checkpointNodes(checkpoint, { ...told, planOrigin: "from turn 9" }, []));
  assert.match(drawn, /checklist Plan \| 1 of 2 done · from turn 9\n/);
});

test("a file that differs from the seen one says so, and opens beside it", () => {
  const uri = "src/auth.ts";
  const seenHash = `sha256:${"1".repeat(64)}`;
  const shown = {
    ...checkpoint,
    artifacts: { ...checkpoint.artifacts, [uri]: { uri, kind: "file", seenHash } },
  };
  const drawn = (some: Partial<RecentArtifact>) =>
    draw(checkpointNodes(shown, { ...told, recent: [recent({ uri, ...some })] }, []));
  const [since, gone] = ["changed since turn 4", "no longer there"];

  assert.match(
    drawn({ state: "changed", words: since }),
    /file auth.ts \| changed since turn 4 · src > compare/,
  );
  assert.match(
    drawn({ state: "gone", words: gone }),
    /circle-slash auth.ts \| no longer there · src > compare/,
  );
  assert.match(
    drawn({ words: "as the session left it" }),
    /file auth.ts \| as the session left it · src > open\n/,
  );
});

test("files, commands and tool outputs are apart, and a failed command shows its failure", () => {
  const artifacts = {
    "make test": { uri: "make test", kind: "command", lastObservedSeq: 9 },
    "web/run/c1": { uri: "web/run/c1", kind: "tool_output", lastObservedSeq: 4 },
  };
  const some = [
    recent({ uri: "make test", kind: "command", state: "failed", words: "exit 2" }),
    recent({ uri: "web/run/c1", kind: "tool_output" }),
  ];
  const nodes = checkpointNodes({ ...checkpoint, artifacts }, { ...told, recent: some }, []);

  assert.equal(
    draw(nodes.slice(4)),
    `\
files Recent Files | none
terminal Recent Commands | 1
  error make test | exit 2 > run
output Tool Outputs | 1
  output web/run > record
`,
  );
  assert.deepEqual(
    nodes.slice(4).map(({ unfolded }) => unfolded),
    [true, true, false],
  );
});

test("a dropped note has no row", () => {
  const gone = note({ id: "old", value: "gone", evicted: true });
  const drawn = draw(checkpointNodes(checkpoint, told, [gone]));

  assert.doesNotMatch(drawn, /gone/);
});

test("an empty checkpoint still has all its sections", () => {
  const empty = { ...checkpoint, task: null, plan: { steps: [], done: {} } };
  const nodes = checkpointNodes({ ...empty, artifacts: {} }, { ...told, recent: [] }, []);
  assert.deepEqual(
    nodes.map(({ row }) => `${row.label} | ${row.description}`),
    [
      "No task yet | ",
      "Plan | none",
      "Facts | none yet: add one with +",
      "Decisions | none yet: add one with +",
      "Recent Files | none",
      "Recent Commands | none",
    ],
  );
});

test("the reason why nothing can be requested is shown while the server is down, and only then", () => {
  assert.equal(whyDown({ kind: "stopped" }), "The server has stopped.");
  assert.equal(whyDown({ kind: "noPython", reason: "Found none." }), "Found none.");
  assert.equal(whyDown({ kind: "failed", reason: "It ended." }), "It ended.");
  for (const state of [
    { kind: "starting" },
    { kind: "indexing", percent: 3 },
    { kind: "ready" },
  ] as const) {
    assert.equal(whyDown(state), null);
  }
});

test("the status bar shows the meter of the visible session, or the problem", () => {
  const full = session({ live: true, contextTokens: 232_560, nearlyFull: true });
  const ready = (some: SessionSummary | null) => statusOf({ kind: "ready" }, some);

  assert.equal(ready(session({ live: true })).text, "$(pulse) Codex 4%");
  assert.equal(ready(session({})).text, "$(bookmark) Codex 4%");
  assert.equal(ready(session({ contextTokens: 300_000 })).text, "$(bookmark) Codex over");
  assert.equal(ready(session({ contextTokens: null })).text, "$(bookmark) Codex");
  assert.equal(ready(full).text, "$(pulse) Codex 90%");
  assert.equal(ready(full).alert, "warning");
  assert.deepEqual([ready(full).click, ready(null).click], ["menu", "open"]);
  assert.equal(statusOf({ kind: "stopped" }, full).click, "restart");
  assert.equal(statusOf({ kind: "noPython", reason: "none" }, null).alert, "error");
  assert.match(statusOf({ kind: "indexing", percent: 40 }, null).text, /40%/);
});

test("a context is nearly full when the server says so, whatever its share", () => {
  const [full, early] = [session({ contextTokens: 258_000 }), session({ nearlyFull: true })];
  const alerts = [full, early].map((each) => statusOf({ kind: "ready" }, each).alert);
  assert.deepEqual(alerts, ["none", "warning"]);
});

test("a file is opened at its place, and never at a place on another machine", () => {
  assert.equal(artifactPath("/home/dev/demo", "src/a.ts"), "/home/dev/demo/src/a.ts");
  assert.equal(artifactPath("/home/dev/demo/", "/etc/hosts"), "/etc/hosts");
  assert.equal(artifactPath("C:\\demo", "src/a.ts"), "C:\\demo/src/a.ts");
  assert.equal(artifactPath("C:\\demo", "D:/x/a.ts"), "D:/x/a.ts");
  assert.equal(artifactPath(null, "a.ts"), null);
  for (const uri of ["\\\\host\\share\\x", "//host/share/x", "vscode://x/y", "command:evil"]) {
    assert.equal(artifactPath("C:\\demo", uri), null, uri);
    assert.equal(artifactPath("/home/dev/demo", uri), null, uri);
  }
});

/** Format one line per row: icon, label, description and click action, indented by depth. */
function draw(nodes: readonly CheckpointNode[], depth = 0): string {
  return nodes
    .map(({ row, action, children }) => {
      const description = row.description === "" ? "" : ` | ${row.description}`;
      const click = action === null ? "" : ` > ${action.kind}`;
      const line = `${"  ".repeat(depth)}${row.icon} ${row.label}${description}${click}\n`;
      return line + draw(children, depth + 1);
    })
    .join("");
}

test("a command may contain an id, and neither an option nor another command", () => {
  assert.equal(isPlainId("01a1f865-0000-7000-8000-000000000001"), true);
  for (const other of ["--last", "-", "", "a b", "a;b", "$(a)", "a\nb", "../a"]) {
    assert.equal(isPlainId(other), false, other);
  }
});

test("the icon of a row is filled as far as its context, and is a bubble without a figure", () => {
  const icon = (some: Partial<SessionSummary>) => sessionRow(session(some), NOW).icon;
  assert.equal(icon({ contextTokens: 1_000 }), "meter-0");
  assert.equal(icon({ contextTokens: 129_200 }), "meter-4");
  assert.equal(icon({ contextTokens: 300_000, nearlyFull: true }), "meter-8-alert");
  assert.equal(icon({ contextTokens: 300_000 }), "meter-8-alert"); // over its window
  assert.equal(icon({ contextTokens: null }), "comment");
});
