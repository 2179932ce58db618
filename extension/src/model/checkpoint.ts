/** What the tree of one checkpoint shows: task, plan, artifacts, counts; facts and decisions are `notes`. */

import type { Note, Pin, SessionSummary } from "../protocol.ts";
import { type CheckpointNode, node, section } from "./node.ts";
import { decisionsNode, factsNode } from "./notes.ts";
import { isPinned, pinsNode } from "./pins.ts";
import { age, cut, dotted, listed, meter, plain } from "./text.ts";

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
  pins: readonly Pin[] = [],
): CheckpointNode[] {
  const pinned = pinsNode(pins);
  return [
    taskNode(checkpoint),
    planNode(checkpoint),
    artifactsNode(checkpoint, pins),
    ...(pinned === null ? [] : [pinned]),
    factsNode(notes),
    decisionsNode(notes),
    countsNode(checkpoint, session, now),
  ];
}

function taskNode(checkpoint: Checkpoint): CheckpointNode {
  const task = plain(checkpoint.task?.text ?? "") || "No task yet";
  return node("task", { label: task, spoken: listed("Task", task), icon: "target" });
}

function planNode(checkpoint: Checkpoint): CheckpointNode {
  const { steps, done } = checkpoint.plan;
  const finished = steps.filter((step) => done[step.id] === true).length;
  const children = steps.map((step) => {
    const isDone = done[step.id] === true;
    const label = plain(step.text);
    return node(`plan/${step.id}`, {
      label,
      spoken: listed(label, isDone ? "done" : "open"),
      icon: isDone ? "pass-filled" : "circle-large-outline",
      colour: isDone ? "charts.green" : null,
    });
  });
  const count = steps.length === 0 ? "none" : `${finished} of ${steps.length} done`;
  return section("plan", "Plan", count, "checklist", children);
}

function artifactsNode(checkpoint: Checkpoint, pins: readonly Pin[]): CheckpointNode {
  const children = checkpoint.recentArtifacts.map((uri) =>
    artifactNode(checkpoint.artifacts[uri] ?? { uri, kind: "file" }, isPinned(pins, uri)),
  );
  const total = Object.keys(checkpoint.artifacts).length;
  const some = total > children.length ? `${children.length} of ${total}` : `${children.length}`;
  const count = total === 0 ? "none" : some;
  return section("artifacts", "Recent Artifacts", count, "files", children);
}

function artifactNode(artifact: Artifact, pinned: boolean): CheckpointNode {
  const label = cut(plain(artifact.uri), 400);
  const id = `artifacts/${artifact.kind}/${artifact.uri}`;
  if (artifact.kind === "file") {
    const hash = shortHash(artifact.hash);
    return node(
      id,
      {
        label,
        description: hash,
        tooltip: `${label}\n${plain(artifact.hash ?? "no hash")}`,
        spoken: listed(`file ${label}`, pinned ? "pinned" : "", hash),
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
      spoken: isCommand ? `command ${label}` : `output of ${label}`,
      icon: isCommand ? "terminal" : "output",
    },
    { action: { kind: "copy", text: artifact.uri } },
  );
}

/** The first eight digits; a hash of size and time alone is called weak. */
function shortHash(hash: string | undefined): string {
  if (hash === undefined) {
    return "no hash";
  }
  const [kind = "", value = ""] = hash.split(":", 2);
  return kind === "sha256" ? plain(value).slice(0, 8) : "weak hash";
}

function countsNode(checkpoint: Checkpoint, session: SessionSummary, now: number): CheckpointNode {
  const counts: [string, string, string][] = [
    ["context", "Context", meter(session)],
    ["turns", "Turns", String(session.turns)],
    ["windows", "Windows", String(session.windows)],
    ["compactions", "Compactions", String(session.compactions)],
    ["artifacts", "Artifacts", String(Object.keys(checkpoint.artifacts).length)],
    ["seq", "Records", String(session.seq)],
    ["updated", "Last record", age(session.updatedAt, now)],
    ["folder", "Folder", plain(session.cwd ?? "")],
  ];
  const children = counts
    .filter(([, , value]) => value !== "")
    .map(([id, label, value]) =>
      node(`counts/${id}`, { label, description: value, icon: "symbol-number" }),
    );
  const count = dotted(
    `turns: ${session.turns}`,
    session.compactions === 0 ? "" : `compactions: ${session.compactions}`,
  );
  return { ...section("counts", "Counts", count, "graph", children), unfolded: false };
}
