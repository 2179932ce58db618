/** What the tree shows of facts and decisions: how they stand, and what they rest on. */

import type { Note, NoteDependency, NoteEvidence } from "../protocol.ts";
import { type CheckpointNode, node, section } from "./node.ts";
import { listed, plain } from "./text.ts";

/** The facts of a session: what can no longer be relied on comes first. */
export function factsNode(notes: readonly Note[]): CheckpointNode {
  const facts = notes.filter(({ kind }) => kind === "fact");
  const suspect = facts.filter(isSuspect);
  const valid = facts.filter((fact) => !isSuspect(fact));
  const children = [...suspect, ...valid].map((fact) => factNode(fact));
  const count = facts.length === 0 ? "none" : `${valid.length} valid, ${suspect.length} suspect`;
  return section("facts", "Facts", count, "lightbulb", children);
}

/** The decisions of a session; those that a later one replaced are folded below. */
export function decisionsNode(notes: readonly Note[]): CheckpointNode {
  const decisions = notes.filter(({ kind }) => kind === "decision");
  const standing = decisions.filter(({ supersededBy }) => supersededBy === null);
  const superseded = decisions.filter(({ supersededBy }) => supersededBy !== null);
  const children = standing.map((decision) => decisionNode(decision));
  if (superseded.length > 0) {
    const rows = superseded.map((decision) => decisionNode(decision));
    const folded = section("superseded", "Superseded", `${rows.length}`, "history", rows);
    children.push({ ...folded, unfolded: false });
  }
  const count = standing.length === 0 ? "none" : `${standing.length}`;
  return section("decisions", "Decisions", count, "law", children);
}

/** Whether a fact can no longer be relied on. */
export function isSuspect(note: Note): boolean {
  return note.status === "SUSPECT";
}

function factNode(fact: Note): CheckpointNode {
  const label = plain(`${fact.id} = ${fact.value ?? ""}`);
  const failing = fact.dependsOn.find(({ uri }) => uri === fact.why);
  const why = failing === undefined ? "" : whatFails(failing);
  const standing = isSuspect(fact) ? "SUSPECT" : "VALID";
  return node(
    `facts/${fact.id}`,
    {
      label,
      description: isSuspect(fact) ? why || standing : "",
      tooltip: [label, standing, why].filter((line) => line !== "").join("\n"),
      spoken: listed(standing, label, why),
      icon: isSuspect(fact) ? "warning" : "pass",
      colour: isSuspect(fact) ? "list.warningForeground" : null,
    },
    {
      note: fact,
      children: [
        evidenceNode(`facts/${fact.id}`, fact.evidence),
        ...fact.dependsOn.map((each) => dependencyNode(`facts/${fact.id}`, each)),
      ],
    },
  );
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
  return node(
    id,
    {
      label,
      description: topic,
      tooltip: `${label}\n${rationale}`,
      spoken: listed(topic, label, rationale),
      icon: "law",
    },
    { note: decision, children },
  );
}

function evidenceNode(id: string, evidence: NoteEvidence): CheckpointNode {
  const ref = plain(evidence.ref);
  if (evidence.source === "file") {
    const label = `from file ${ref}`;
    const action = { kind: "open", uri: evidence.ref } as const;
    return node(`${id}/evidence`, { label, icon: "file" }, { action });
  }
  const isUser = evidence.source === "user";
  const label = isUser ? "from a message of the user" : "from the output of a tool";
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
  const description = whatFails(each, "changed since");
  const row = { label: uri, description, icon: "diff-modified", colour: "list.warningForeground" };
  const hash = each.hash ?? "";
  const canCompare = hash.startsWith("sha256:") && each.current !== null;
  const action = canCompare
    ? ({ kind: "compare", uri: each.uri, hash } as const)
    : ({ kind: "open", uri: each.uri } as const);
  return node(rowId, row, { action });
}

/** Why a dependency no longer holds, in a few words. */
function whatFails(each: NoteDependency, changed?: string): string {
  const uri = plain(each.uri);
  if (each.hash === "unknown:") {
    return changed === undefined ? `${uri} was not seen` : "not seen when it was noted";
  }
  if (each.current === null) {
    return changed === undefined ? `${uri} cannot be seen` : "cannot be seen now";
  }
  return changed ?? `${uri} changed`;
}
