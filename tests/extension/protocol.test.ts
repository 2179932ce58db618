import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { ResponseError } from "vscode-jsonrpc/node";
import type { Checkpoint } from "../../extension/src/checkpoint/model/rows.ts";
import {
  type Changed,
  ChangedNotification,
  type DoctorReport,
  REFUSED,
  type Refused,
  type SessionDetail,
  type SessionList,
  type ViewText,
} from "../../extension/src/client/protocol.ts";
import { sessionsParams } from "../../extension/src/sessions/model/rows.ts";
import { type Home, makeHome, Rollout, type RunningServer, startServer } from "./server.ts";

const PARENT = "01a1f865-38d8-70b2-8c7e-c01cbfd01af1";
const CHILD = "01a1f865-b678-7000-8000-000000000001";

let home: Home;
let server: RunningServer;

beforeEach(async () => {
  home = await makeHome();
  await writeFile(join(home.project, "auth.py"), "token = None\n");
  const parent = await new Rollout(home, PARENT).begin(home.project);
  await parent.says("Fix the login");
  await parent.reads("auth.py");
  const child = await new Rollout(home, CHILD).begin(home.project, PARENT);
  await child.says("Count the lines");
  server = await startServer(home);
});

afterEach(() => home.remove());

/**
 * Wait for the notification that names a session; other notifications may come first. Call this
 * before the request that causes it: a notification may arrive before the awaited answer resolves.
 */
function changeOf(sessionId: string): Promise<Changed> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("no such change was told")), 30_000);
    server.connection.onNotification(ChangedNotification, (changed) => {
      if (changed.sessionIds.includes(sessionId)) {
        clearTimeout(late);
        resolve(changed);
      }
    });
  });
}

test("sessions come newest first, by pages, with every key", async () => {
  const asked = sessionsParams({ cwd: home.project, limit: 1 });
  const first: SessionList = await server.request("sessions", asked);
  const cursor = first.nextCursor;
  assert.ok(first.left > 0);
  const second: SessionList = await server.request("sessions", {
    ...asked,
    cursor,
  });

  const all = [...first.items, ...second.items];
  assert.deepEqual(all.map((each) => each.sessionId).sort(), [PARENT, CHILD]);
  assert.equal(second.nextCursor, null);
  const child = all.find((each) => each.sessionId === CHILD);
  const parent = all.find((each) => each.sessionId === PARENT);
  assert.equal(child?.parentSession, PARENT);
  assert.equal(child?.task, "Count the lines");
  assert.deepEqual(
    { ...parent, path: "", updatedAt: "", fileTime: "" },
    {
      sessionId: PARENT,
      path: "",
      cwd: home.project,
      title: "Fix the login",
      task: "Fix the login",
      updatedAt: "",
      cliVersion: "0.169.0",
      model: null,
      contextTokens: parent?.contextTokens ?? null,
      contextTokensSource: "estimated",
      contextWindow: null,
      windows: 1,
      compactions: 0,
      suspectFacts: 0,
      live: false,
      archived: false,
      forkedFrom: null,
      parentSession: null,
      source: "cli",
      background: false,
      continuedBy: null,
      turns: 1,
      seq: 5,
      named: false,
      markers: 0,
      branches: 0,
      madeBy: null,
      undone: false,
      nearlyFull: false,
      overWindow: false,
      refused: null,
      git: null,
      offer: null,
      startFolder: home.project,
      fileTime: "",
    },
  );
  assert.match(parent?.updatedAt ?? "", /^2026-11-20T09:00:0\d\.000Z$/);
});

test("a search without a match is an empty page", async () => {
  const asked = sessionsParams({ search: "no such words" });
  const list = await server.request("sessions", asked);
  assert.deepEqual(list, { items: [], nextCursor: null, left: 0 });
});

test("a session has its turns", async () => {
  const asked = { sessionId: PARENT };
  const detail: SessionDetail = await server.request("session", asked);

  assert.equal(detail.summary.sessionId, PARENT);
  assert.deepEqual(
    detail.turns.map(({ number, task, ended, aborted }) => ({ number, task, ended, aborted })),
    [{ number: 1, task: "Fix the login", ended: false, aborted: false }],
  );
  assert.equal(detail.caps.maxRecentArtifacts, 16);
});

test("a checkpoint has the shape that the tree reads, a view is text", async () => {
  const asked = { sessionId: PARENT, turnId: null };
  const shown = await server.request("show", asked);
  const checkpoint: Checkpoint = JSON.parse(shown.text);
  assert.equal(checkpoint.task?.text, "Fix the login");
  assert.deepEqual(
    shown.recent.map(({ uri, kind }) => [uri, kind]),
    [["auth.py", "file"]],
  );
  assert.match(checkpoint.artifacts["auth.py"]?.hash ?? "", /^sha256:[0-9a-f]{64}$/);

  const view: ViewText = await server.request("view", {
    ...asked,
    caps: { maxRecentArtifacts: 0 },
  });
  assert.match(view.text, /^\[SESSION_CHECKPOINT v1\]\n/);
  assert.doesNotMatch(view.text, /auth\.py/);
  assert.equal(view.caps.maxRecentArtifacts, 0);
});

test("a refusal carries its code and facts", async () => {
  const asked = { sessionId: "00000000-0000", turnId: null };
  const error = await server.request("show", asked).then(
    () => assert.fail("it was answered"),
    (refusal: ResponseError<Refused>) => refusal,
  );
  assert.equal(error.code, REFUSED);
  assert.equal(error.data?.code, "unknown_session");
  assert.equal(typeof error.data?.facts, "object");
});

test("the doctor names the folders it checked", async () => {
  const report: DoctorReport = await server.request("doctor", {});
  assert.equal(report.codexHome, home.codexHome);
  assert.equal(report.sessions, 2);
});

test("an appended record and a saved file are reported within two seconds", async () => {
  const looked = changeOf(PARENT);
  await server.request("sessions", sessionsParams({ limit: 1 }));
  // The server has read everything once, and reported its stored data.
  await looked;
  await new Promise((done) => setTimeout(done, 200));

  const began = performance.now();
  const appended = changeOf(PARENT);
  await new Rollout(home, PARENT).says("Now the tests");
  assert.equal((await appended).reason, "rollout");
  const { items } = await server.request("sessions", sessionsParams({}));
  assert.equal(items.find((each) => each.sessionId === PARENT)?.task, "Now the tests");
  assert.ok(performance.now() - began < 2000);

  const hash = async () => {
    const asked = { sessionId: PARENT, turnId: null };
    const { text } = await server.request("show", asked);
    return (JSON.parse(text) as Checkpoint).artifacts["auth.py"]?.hash;
  };
  const before = await hash();
  const saved = changeOf(PARENT);
  await writeFile(join(home.project, "auth.py"), "token = 1\n");
  assert.equal((await saved).reason, "workspace");
  assert.notEqual(await hash(), before);
});
