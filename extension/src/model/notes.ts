/** Payloads of `memory.apply`; the server validates them. */

import { MAX_KEY } from "../limits.ts";
import type { Anchor, Note } from "../protocol.ts";

export interface FactStatement {
  readonly key: string;
  readonly value: string;
  readonly evidence: Anchor;
  readonly dependsOn: readonly string[];
}

export interface DecisionStatement {
  readonly decisionId: string;
  readonly decision: string;
  readonly rationale: string;
  readonly supersedes: string | null;
  readonly evidence: Anchor;
}

export function factPayload(fact: FactStatement): object {
  return {
    kind: "fact",
    key: fact.key,
    value: fact.value,
    evidence: cited(fact.evidence),
    dependsOn: fact.dependsOn.map((uri) => ({ uri })),
  };
}

export function decisionPayload(decision: DecisionStatement): object {
  const { decisionId, rationale, supersedes } = decision;
  return {
    kind: "decision",
    decisionId,
    decision: decision.decision,
    rationale,
    ...(supersedes === null ? {} : { supersedes }),
    evidence: cited(decision.evidence),
  };
}

/** The first free decision id of `d1`, `d2`, … */
export function freeDecisionId(notes: readonly Note[]): string {
  const taken = new Set(notes.map(({ id }) => id));
  let number = 1;
  while (taken.has(`d${number}`)) {
    number += 1;
  }
  return `d${number}`;
}

/** Whether a text can be a key: letters and digits of any script, `. _ - / :`, in NFC. */
export function isKey(text: string): boolean {
  return (
    /^[\p{L}\p{N}._\-/:]+$/u.test(text) &&
    [...text].length <= MAX_KEY &&
    text.normalize("NFC") === text
  );
}

/** The name of a file in a checkpoint: relative to the session's folder if it is in there. */
export function uriOfFile(folder: string | null, path: string): string {
  const isWindows = /^[A-Za-z]:[\\/]/.test(path);
  const slashed = (text: string) => (isWindows ? text.replaceAll("\\", "/") : text);
  const compared = (text: string) => (isWindows ? text.toLowerCase() : text);
  const file = slashed(path);
  const base = `${slashed(folder ?? "").replace(/\/+$/, "")}/`;
  if (base !== "/" && compared(file).startsWith(compared(base))) {
    return file.slice(base.length);
  }
  return isWindows ? `${file.slice(0, 1).toUpperCase()}${file.slice(1)}` : file;
}

function cited({ source, ref }: Anchor): object {
  return { source, ref };
}
