/** What the tree of one checkpoint shows: task, plan, artifacts, counts; facts and decisions are `notes`. */

import type { Note, Pin, SessionSummary } from "../protocol.ts";
import { type CheckpointNode, node, section } from "./node.ts";
import { decisionsNode, factsNode } from "./notes.ts";
import { isPinned, pinsNode } from "./pins.ts";
import { age, cut, dotted, listed, meter, plain, type Say } from "./text.ts";

/** `checkpoint_v1.json`, as far as it is shown. */
export interface Checkpoint {
  readonly task: { readonly text: string } | null;
  readonly plan: {
    readonly steps: readonly { readonly id: string; readonly text: string }[];
    readonly done: Readonly<Record<string, boolean>>;
  };
  readonly artifacts: Readonly<Record<string, Artifact>>;
  readonly recentArtifacts: readonly string[];
}

interface Artifact {
  readonly uri: string;
  readonly kind: string;
  readonly hash?: string;
}

/** All rows of a checkpoint. */
export function checkpointNodes(
  checkpoint: Checkpoint,
  notes: readonly Note[],
  session: SessionSummary,
  now: number,
  say: Say,
  pins: readonly Pin[] = [],
): CheckpointNode[] {
  const pinned = pinsNode(pins, say);
  return [
    taskNode(checkpoint, say),
    planNode(checkpoint, say),
    artifactsNode(checkpoint, pins, say),
    ...(pinned === null ? [] : [pinned]),
    factsNode(notes, say),
    decisionsNode(notes, say),
    countsNode(checkpoint, session, now, say),
  ];
}

function taskNode(checkpoint: Checkpoint, say: Say): CheckpointNode {
  const task = plain(checkpoint.task?.text ?? "") || say("No task yet");
  return node("task", { label: task, spoken: listed(say("Task"), task), icon: "target" });
}

function planNode(checkpoint: Checkpoint, say: Say): CheckpointNode {
  const { steps, done } = checkpoint.plan;
  const finished = steps.filter((step) => done[step.id] === true).length;
  const children = steps.map((step) => {
    const isDone = done[step.id] === true;
    const label = plain(step.text);
    return node(`plan/${step.id}`, {
      label,
      spoken: listed(label, isDone ? say("done") : say("open")),
      icon: isDone ? "pass-filled" : "circle-large-outline",
      colour: isDone ? "charts.green" : null,
    });
  });
  const count = steps.length === 0 ? say("none") : say("{0} of {1} done", finished, steps.length);
  return section("plan", say("Plan"), count, "checklist", children);
}

function artifactsNode(checkpoint: Checkpoint, pins: readonly Pin[], say: Say): CheckpointNode {
  const children = checkpoint.recentArtifacts.map((uri) =>
    artifactNode(checkpoint.artifacts[uri] ?? { uri, kind: "file" }, isPinned(pins, uri), say),
  );
  const total = Object.keys(checkpoint.artifacts).length;
  const some =
    total > children.length ? say("{0} of {1}", children.length, total) : `${children.length}`;
  const count = total === 0 ? say("none") : some;
  return section("artifacts", say("Recent Artifacts"), count, "files", children);
}

function artifactNode(artifact: Artifact, pinned: boolean, say: Say): CheckpointNode {
  const label = cut(plain(artifact.uri), 400);
  const id = `artifacts/${artifact.kind}/${artifact.uri}`;
  if (artifact.kind === "file") {
    const hash = shortHash(artifact.hash, say);
    return node(
      id,
      {
        label,
        description: hash,
        tooltip: `${label}\n${plain(artifact.hash ?? say("no hash"))}`,
        spoken: listed(say("file {0}", label), pinned ? say("pinned") : "", hash),
        icon: pinned ? "pinned" : "file",
      },
      {
        action: { kind: "open", uri: artifact.uri },
        pin: pinned ? { uri: artifact.uri, start: null, end: null } : null,
      },
    );
  }
  const isCommand = artifact.kind === "command";
  return node(
    id,
    {
      label,
      spoken: isCommand ? say("command {0}", label) : say("output of {0}", label),
      icon: isCommand ? "terminal" : "output",
    },
    { action: { kind: "copy", text: artifact.uri } },
  );
}

/** The first eight digits; a hash of size and time alone is called weak. */
function shortHash(hash: string | undefined, say: Say): string {
  if (hash === undefined) {
    return say("no hash");
  }
  const [kind = "", value = ""] = hash.split(":", 2);
  return kind === "sha256" ? plain(value).slice(0, 8) : say("weak hash");
}

function countsNode(
  checkpoint: Checkpoint,
  session: SessionSummary,
  now: number,
  say: Say,
): CheckpointNode {
  const counts: [string, string, string][] = [
    ["context", say("Context"), meter(session, say)],
    ["turns", say("Turns"), String(session.turns)],
    ["windows", say("Windows"), String(session.windows)],
    ["compactions", say("Compactions"), String(session.compactions)],
    ["artifacts", say("Artifacts"), String(Object.keys(checkpoint.artifacts).length)],
    ["seq", say("Records"), String(session.seq)],
    ["updated", say("Last record"), age(session.updatedAt, now, say)],
    ["folder", say("Folder"), plain(session.cwd ?? "")],
  ];
  const children = counts
    .filter(([, , value]) => value !== "")
    .map(([id, label, value]) =>
      node(`counts/${id}`, { label, description: value, icon: "symbol-number" }),
    );
  const count = dotted(
    say("turns: {0}", session.turns),
    session.compactions === 0 ? "" : say("compactions: {0}", session.compactions),
  );
  return { ...section("counts", say("Counts"), count, "graph", children), unfolded: false };
}
