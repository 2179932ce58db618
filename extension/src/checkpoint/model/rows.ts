/** The rows of a checkpoint: task, plan, artifacts, pins, facts, decisions. */

import type {
  CheckpointText,
  Note,
  NoteDependency,
  NoteEvidence,
  Pin,
  Receipt,
  RecentArtifact,
} from "../../client/protocol.ts";
import {
  type Appearance,
  ago,
  cut,
  dotted,
  folderName,
  listed,
  plain,
  rowOf,
} from "../../common/model/text.ts";
import { derivedKey } from "../../notes/model/payloads.ts";

/** The displayed parts of `checkpoint_v1.json`. */
export interface Checkpoint {
  readonly task: { readonly text: string } | null;
  readonly plan: {
    readonly steps: readonly { readonly id: string; readonly text: string }[];
    readonly done: Readonly<Record<string, boolean>>;
  };
  readonly artifacts: Readonly<Record<string, Artifact>>;
}

interface Artifact {
  readonly uri: string;
  readonly kind: string;
  readonly hash?: string;
  readonly seenHash?: string;
  readonly lastObservedSeq?: number;
}

/** Facts about a checkpoint that are not in its text. */
export type CheckpointFacts = Pick<CheckpointText, "planOrigin" | "recent">;

export function checkpointNodes(
  checkpoint: Checkpoint,
  { planOrigin, recent }: CheckpointFacts,
  notes: readonly Note[],
  pins: readonly Pin[] = [],
): CheckpointNode[] {
  const pinned = pinsNode(pins);
  const kept = notes.filter(({ evicted }) => !evicted);
  return [
    taskNode(checkpoint),
    planNode(checkpoint, planOrigin),
    factsNode(kept),
    decisionsNode(kept),
    ...(pinned === null ? [] : [pinned]),
    ...artifactNodes(checkpoint, recent, pins),
  ];
}

function taskNode(checkpoint: Checkpoint): CheckpointNode {
  const task = plain(checkpoint.task?.text ?? "") || "No task yet";
  return node("task", { label: task, spoken: listed("Task", task), icon: "target" });
}

function planNode(checkpoint: Checkpoint, origin: string): CheckpointNode {
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
  return section("plan", "Plan", dotted(count, origin), "checklist", children);
}

/** Separate lists of files, commands and tool outputs. */
function artifactNodes(
  { artifacts }: Checkpoint,
  recent: readonly RecentArtifact[],
  pins: readonly Pin[],
): CheckpointNode[] {
  const listOf = (kind: string, label: string, icon: string) => {
    const children = recent
      .filter((each) => each.kind === kind)
      .map((each) => artifactNode(each, artifacts[each.uri], isPinned(pins, each.uri)));
    const count = children.length === 0 ? "none" : `${children.length}`;
    return section(`artifacts/${kind}`, label, count, icon, children);
  };
  const outputs = { ...listOf("tool_output", "Tool Outputs", "output"), unfolded: false };
  return [
    listOf("file", "Recent Files", "files"),
    listOf("command", "Recent Commands", "terminal"),
    ...(outputs.children.length === 0 ? [] : [outputs]),
  ];
}

function artifactNode(
  { uri, kind, state, words, seen }: RecentArtifact,
  artifact: Artifact | undefined,
  pinned: boolean,
): CheckpointNode {
  const id = `artifacts/${kind}/${uri}`;
  const text = cut(plain(uri), 400);
  const seq = artifact?.lastObservedSeq;
  const { icon, colour } = artifactIcon(kind, state, pinned);
  if (kind === "file") {
    const name = folderName(text);
    const row = {
      label: name,
      // A narrow row needs the name and the state; the end of a path matters more than its start.
      description: dotted(words, text.slice(0, -name.length).replace(/[\\/]$/, "")),
      tooltip: [text, words, weakness(artifact?.hash)].filter((line) => line !== "").join("\n"),
      spoken: listed(`file ${text}`, pinned ? "pinned" : "", words),
      ...{ icon, colour },
    };
    const pin = pinned ? { ...NO_PIN, uri } : null;
    const hash = artifact?.seenHash;
    const action: Action =
      (state === "changed" || state === "gone") && hash !== undefined
        ? { kind: "compare", uri, hash, words: seen }
        : { kind: "open", uri };
    return node(id, row, { action, pin });
  }
  if (kind === "command") {
    const action: Action = seq === undefined ? { kind: "copy", text } : { kind: "run", text, seq };
    const spoken = listed(`command ${text}`, words);
    return node(id, { label: text, description: words, spoken, icon, colour }, { action });
  }
  // `<tool>/<call id>`: the id is meaningless to people.
  const label = text.slice(0, Math.max(0, text.lastIndexOf("/"))) || text;
  const action: Action =
    seq === undefined ? { kind: "copy", text } : { kind: "record", ref: `#${seq}` };
  return node(id, { label, tooltip: text, spoken: `output of ${label}`, icon }, { action });
}

function artifactIcon(
  kind: string,
  state: string | null,
  pinned: boolean,
): Pick<Appearance, "icon" | "colour"> {
  switch (state) {
    case "failed":
      return { icon: "error", colour: "list.errorForeground" };
    case "gone":
      return { icon: pinned ? "pinned" : "circle-slash", colour: "disabledForeground" };
    case "changed":
      return { icon: pinned ? "pinned" : "file", colour: "list.warningForeground" };
    default: {
      const icons: Readonly<Record<string, string>> = { command: "terminal", file: "file" };
      return { icon: pinned ? "pinned" : (icons[kind] ?? "output"), colour: null };
    }
  }
}

/** Explain why a file's content cannot be verified; empty if its hash covers it. */
function weakness(hash: string | undefined): string {
  if (hash === undefined) {
    return "Content not known";
  }
  return hash.startsWith("sha256:")
    ? ""
    : "Too large to read: identified only by its size and time";
}

export type Action =
  | { readonly kind: "open"; readonly uri: string }
  | { readonly kind: "copy"; readonly text: string }
  /** Shows a command with its exit code and output. */
  | { readonly kind: "run"; readonly text: string; readonly seq: number }
  | { readonly kind: "record"; readonly ref: string }
  /** Compares a file with its content at this hash; `words` describes that state. */
  | {
      readonly kind: "compare";
      readonly uri: string;
      readonly hash: string;
      readonly words: string;
    };

export interface CheckpointNode {
  /** Stable across checkpoints: the editor keeps rows unfolded by their id. */
  readonly id: string;
  readonly row: Appearance;
  readonly children: readonly CheckpointNode[];
  readonly unfolded: boolean;
  readonly action: Action | null;
  readonly note: Note | null;
  readonly pin: Pin | null;
}

export function node(
  id: string,
  some: Parameters<typeof rowOf>[0],
  more: Partial<CheckpointNode> = {},
): CheckpointNode {
  const none = { action: null, note: null, pin: null };
  return { id, row: rowOf(some), children: [], unfolded: false, ...none, ...more };
}

/** Make a row that is unfolded at first. */
export function section(
  id: string,
  label: string,
  description: string,
  icon: string,
  children: readonly CheckpointNode[],
): CheckpointNode {
  // The editor keeps an empty row folded, so a row with children needs another id.
  const name = children.length === 0 ? `${id}/empty` : id;
  return node(name, { label, description, icon }, { children, unfolded: true });
}

export function pinsNode(pins: readonly Pin[]): CheckpointNode | null {
  if (pins.length === 0) {
    return null;
  }
  const children = [...pins].reverse().map(pinNode);
  return section("pins", "Pinned", `${pins.length}`, "pin", children);
}

function pinNode(pin: Pin): CheckpointNode {
  const { uri, message, note, text } = pin;
  const [kind, name, action]: [string, string, Action] =
    uri !== null
      ? ["file", uri, { kind: "open", uri }]
      : message !== null
        ? ["message", message, { kind: "record", ref: message }]
        : note !== null
          ? ["note", note, { kind: "copy", text: note }]
          : ["text", text ?? "", { kind: "copy", text: text ?? "" }];
  const label = cut(plain(name), 400);
  const description = kind === "file" ? linesOf(pin) : kind;
  const spoken = listed(`pinned ${kind} ${label}`, kind === "file" ? description : "");
  const id = `pins/${kind}/${pathOf(pin) ?? name}`;
  return node(id, { label, description, spoken, icon: "pinned" }, { action, pin });
}

export const NO_PIN: Pin = {
  uri: null,
  start: null,
  end: null,
  message: null,
  note: null,
  text: null,
};

/** The server's form of a pinned file: `src/a.py`, `src/a.py#L3`, `src/a.py#L3-L9`. */
export function pathOf({ uri, start, end }: Pin): string | null {
  if (uri === null || start === null) {
    return uri;
  }
  return end === null || end === start ? `${uri}#L${start}` : `${uri}#L${start}-L${end}`;
}

export function isPinned(pins: readonly Pin[], uri: string): boolean {
  return pins.some((pin) => pin.uri === uri && pin.start === null);
}

function linesOf({ start, end }: Pin): string {
  if (start === null) {
    return "";
  }
  return end === null || end === start ? `line ${start}` : `lines ${start} to ${end}`;
}

/** The row that shows whether Codex received this checkpoint. */
export function receivedNode(receipt: Receipt, now: number): CheckpointNode {
  const label = receipt.isCurrent
    ? "Codex received this checkpoint"
    : "Codex received an earlier checkpoint";
  const when = ago(receipt.at, now);
  return node("received", {
    label,
    description: when,
    tooltip: [label, plain(receipt.at), occasion(receipt), plain(receipt.digest)].join("\n"),
    spoken: listed(label, when, occasion(receipt)),
    icon: receipt.isCurrent ? "check-all" : "history",
  });
}

/** Why Codex received the checkpoint. */
export function occasion({ door, source }: Receipt): string {
  if (door !== "hook") {
    return "Codex asked for it.";
  }
  const occasions: Readonly<Record<string, string>> = {
    compact: "After Codex compacted the session.",
    resume: "When the session was resumed.",
    fork: "When the session was forked.",
  };
  return occasions[source ?? ""] ?? "";
}

/** Once connected, Codex records notes; the user adds them with + in the view’s title. */
const NONE_YET = "none yet: add one with +";

/** The facts of a session, suspect ones first. */
export function factsNode(notes: readonly Note[]): CheckpointNode {
  const facts = notes.filter(({ kind }) => kind === "fact");
  const suspect = facts.filter(isSuspect);
  const valid = facts.filter((fact) => !isSuspect(fact));
  const children = [...suspect, ...valid].map((fact) => factNode(fact));
  const count = facts.length === 0 ? NONE_YET : `${valid.length} valid, ${suspect.length} suspect`;
  return section("facts", "Facts", count, "lightbulb", children);
}

/** The decisions of a session; superseded ones are in a folded row. */
export function decisionsNode(notes: readonly Note[]): CheckpointNode {
  const decisions = notes.filter(({ kind }) => kind === "decision");
  const current = decisions.filter(({ supersededBy }) => supersededBy === null);
  const superseded = decisions.filter(({ supersededBy }) => supersededBy !== null);
  const children = current.map((decision) => decisionNode(decision));
  if (superseded.length > 0) {
    const rows = superseded.map((decision) => decisionNode(decision));
    const folded = section("superseded", "Superseded", `${rows.length}`, "history", rows);
    children.push({ ...folded, unfolded: false });
  }
  const count = current.length === 0 ? NONE_YET : `${current.length}`;
  return section("decisions", "Decisions", count, "law", children);
}

export function isSuspect(note: Note): boolean {
  return note.status === "SUSPECT";
}

function factNode(fact: Note): CheckpointNode {
  const text = factWords(fact);
  const failing = fact.dependsOn.find(({ uri }) => uri === fact.why);
  const why = failing === undefined ? "" : whatFails(failing);
  const status = isSuspect(fact) ? "suspect" : "valid";
  const row = {
    label: text,
    description: isSuspect(fact) ? why || status : "",
    tooltip: [text, why || status, `Id: ${plain(fact.id)}`].join("\n"),
    spoken: listed(status, text, why),
    icon: isSuspect(fact) ? "warning" : "pass",
    colour: isSuspect(fact) ? "list.warningForeground" : null,
  };
  const id = `facts/${fact.id}`;
  const dependencies = fact.dependsOn.map((each) => dependencyNode(id, each));
  const children = [evidenceNode(id, fact.evidence), ...dependencies];
  const first =
    isSuspect(fact) && failing !== undefined ? dependencyNode(id, failing).action : null;
  return node(id, row, { note: fact, children, action: first });
}

/** A fact's text; an id derived from the text is left out. */
function factWords({ id, value }: Note): string {
  const text = plain(value ?? "");
  return id.startsWith(derivedKey(text)) ? text : plain(`${id} = ${text}`);
}

function decisionNode(decision: Note): CheckpointNode {
  const id = `decisions/${decision.id}`;
  const label = plain(decision.decision ?? "");
  const topic = plain(decision.topic ?? "");
  const rationale = plain(decision.rationale ?? "");
  const replaced = decision.supersedes === null ? "" : plain(decision.supersedes);
  const replacing = decision.supersededBy === null ? "" : plain(decision.supersededBy);
  const children = [node(`${id}/why`, { label: rationale, icon: "comment" })];
  if (replaced !== "") {
    children.push(node(`${id}/supersedes`, { label: `replaces ${replaced}`, icon: "history" }));
  }
  if (replacing !== "") {
    const replacedBy = `replaced by ${replacing}`;
    children.push(node(`${id}/supersededBy`, { label: replacedBy, icon: "arrow-right" }));
  }
  children.push(evidenceNode(id, decision.evidence));
  const spoken = listed(topic, label, rationale);
  const row = { label, description: topic, tooltip: `${label}\n${rationale}`, spoken, icon: "law" };
  return node(id, row, { note: decision, children });
}

function evidenceNode(id: string, evidence: NoteEvidence): CheckpointNode {
  const ref = plain(evidence.ref);
  if (evidence.source === "file") {
    const label = `from the file ${ref}`;
    const action = { kind: "open", uri: evidence.ref } as const;
    return node(`${id}/evidence`, { label, icon: "file" }, { action });
  }
  const isUser = evidence.source === "user";
  const label = isUser ? "from your message" : "from a tool’s output";
  const action = { kind: "record", ref: evidence.ref } as const;
  const icon = isUser ? "account" : "output";
  return node(`${id}/evidence`, { label, tooltip: `${label}\n${ref}`, icon }, { action });
}

function dependencyNode(id: string, each: NoteDependency): CheckpointNode {
  const uri = plain(each.uri);
  const rowId = `${id}/depends/${each.uri}`;
  if (each.holds) {
    const action = { kind: "open", uri: each.uri } as const;
    const isWeak = each.current?.startsWith("stat:") ?? false;
    const description = isWeak ? "unchanged in size and time" : "unchanged";
    const row = { label: uri, description, icon: isWeak ? "question" : "pass" };
    return node(rowId, row, { action });
  }
  if (isImported(each)) {
    return node(rowId, { label: uri, description: "not accepted here yet", icon: "question" });
  }
  const description = whatFails(each, "changed since the note");
  const row = { label: uri, description, icon: "diff-modified", colour: "list.warningForeground" };
  const hash = each.hash ?? "";
  const canCompare = hash.startsWith("sha256:") && each.current !== null;
  const action = canCompare
    ? ({ kind: "compare", uri: each.uri, hash, words: "when noted" } as const)
    : ({ kind: "open", uri: each.uri } as const);
  return node(rowId, row, { action });
}

/** Check for the marker of a fact that came from a pack and was not accepted here. */
function isImported({ uri, hash }: NoteDependency): boolean {
  return uri === "imported" && hash === "unknown:";
}

function whatFails(each: NoteDependency, changed?: string): string {
  const uri = plain(each.uri);
  if (isImported(each)) {
    return "imported, not accepted here yet";
  }
  if (each.hash === "unknown:") {
    return changed === undefined ? `${uri} was not there` : "not there when it was noted";
  }
  if (each.current === null) {
    return changed === undefined ? `${uri} cannot be read` : "cannot be read now";
  }
  return changed ?? `${uri} changed`;
}
