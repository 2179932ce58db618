/** Sample values shared by several tests. */

import type { Checkpoint, CheckpointFacts } from "../../extension/src/checkpoint/model/rows.ts";

import type {
  Loss,
  Note,
  RecentArtifact,
  SessionSummary,
} from "../../extension/src/client/protocol.ts";

/** Make a typical session with the given values. */
export function session(some: Partial<SessionSummary>): SessionSummary {
  return {
    sessionId: "01a1f866-1577-75b3-94b5-d7c15f455a1c",
    path: "/home/dev/.codex/sessions/2026/11/20/rollout.jsonl",
    cwd: "/home/dev/demo",
    title: "Set the retry limit",
    task: "What is 39 * 40?",
    updatedAt: "2026-11-20T10:00:00.000Z",
    cliVersion: "0.169.0",
    model: "gpt-5.5",
    contextTokens: 12_410,
    contextTokensSource: "reported",
    contextWindow: 258_400,
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
    turns: 40,
    seq: 439,
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
    startFolder: "/home/dev/demo",
    fileTime: "2026-11-20T10:00:00.500Z",
    ...some,
  };
}

/** A checkpoint with at least one entry of each kind. */
export const checkpoint: Checkpoint = {
  task: { text: "Make the tests pass" },
  plan: {
    steps: [
      { id: "s1", text: "Read the code" },
      { id: "s2", text: "Fix it" },
    ],
    done: { s1: true, s2: false },
  },
  artifacts: {
    "npm test": { uri: "npm test", kind: "command", lastObservedSeq: 7 },
    "src/auth.ts": { uri: "src/auth.ts", kind: "file", hash: `sha256:9f3c2a1b${"0".repeat(56)}` },
    "big.bin": { uri: "big.bin", kind: "file", hash: "stat:99-1" },
    "old.ts": { uri: "old.ts", kind: "file" },
  },
};

/** The server's answer about it. */
export const told: CheckpointFacts = {
  planOrigin: "",
  recent: [
    recent({ uri: "src/auth.ts" }),
    recent({ uri: "big.bin" }),
    recent({ uri: "npm test", kind: "command" }),
  ],
};

/** Make a typical recent file with the given values. */
export function recent(some: Partial<RecentArtifact>): RecentArtifact {
  return { uri: "a.py", kind: "file", state: null, words: "", seen: "turn 1", ...some };
}

/** Make a typical fact with the given values. */
export function note(some: Partial<Note>): Note {
  return {
    kind: "fact",
    id: "auth.ttl",
    value: "900 seconds",
    topic: null,
    decision: null,
    rationale: null,
    supersedes: null,
    supersededBy: null,
    status: "VALID",
    why: null,
    evidence: { source: "user", ref: "m1", hash: null },
    dependsOn: [],
    seq: 7,
    turnId: "t1",
    acceptedAt: "2026-11-20T10:00:00.000Z",
    evicted: false,
    ...some,
  };
}

/** Return a compaction's losses: none, except as given in `some`. */
export function loss(some: Partial<Loss>): Loss {
  const made = someLoss(some);
  const { task, openPlanSteps, editedFiles, failingCommands } = made;
  const things = [...(task === null ? [] : [task]), ...openPlanSteps, ...editedFiles];
  const all: readonly { readonly lost: boolean | null }[] = [...things, ...failingCommands];
  const count = (fate: boolean | null) => all.filter(({ lost }) => lost === fate).length;
  const totals = { lost: count(true), kept: count(false), unknown: count(null) };
  return { ...made, totals: some.totals ?? totals };
}

function someLoss(some: Partial<Loss>): Loss {
  return {
    number: 1,
    windowId: "w1",
    openedAtSeq: 40,
    openedAt: "2026-11-20T11:00:00.000Z",
    trigger: "mid_turn",
    strategy: "local",
    counts: true,
    sealed: false,
    totals: { lost: 0, kept: 0, unknown: 0 },
    taskPresent: true,
    task: { text: "Fix the shop", ref: "u1", seq: 3, lost: false },
    openPlanSteps: [],
    editedFiles: [],
    failingCommands: [],
    notListed: 0,
    reads: 0,
    rereadsUnchanged: 0,
    bytes: 0,
    rereads: [],
    ...some,
  };
}
