/** Payloads of `memory.apply`; the server validates them. */

import { MAX_KEY } from "../../client/limits.ts";
import type { Anchor, Note } from "../../client/protocol.ts";

export interface FactStatement {
  readonly key: string;
  readonly value: string;
  readonly evidence: Pick<Anchor, "source" | "ref">;
  readonly dependsOn: readonly string[];
}

export interface DecisionStatement {
  readonly decisionId: string;
  readonly decision: string;
  readonly rationale: string;
  readonly supersedes: string | null;
  readonly evidence: Anchor;
}

export function factPayload({ evidence, dependsOn, ...said }: FactStatement): object {
  const files = dependsOn.map((uri) => ({ uri }));
  return { kind: "fact", ...said, evidence: cited(evidence), dependsOn: files };
}

export function decisionPayload({ supersedes, evidence, ...said }: DecisionStatement): object {
  const replaced = supersedes === null ? {} : { supersedes };
  return { kind: "decision", ...said, ...replaced, evidence: cited(evidence) };
}

/** The maximum length of an id derived from a text. */
const DERIVED = 32;

/** Derive an id from the first words of a text; `note` if it has none. */
export function derivedKey(text: string): string {
  const words =
    text
      .normalize("NFC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  let key = "";
  for (const word of words) {
    const longer = key === "" ? [...word].slice(0, DERIVED).join("") : `${key}-${word}`;
    if ([...longer].length > DERIVED) {
      break;
    }
    key = longer;
  }
  return key || "note";
}

/** Parse a typed fact: `auth.ttl = 900 seconds` gives its id, else one is derived. */
export function factIn(text: string, notes: readonly Note[]) {
  const [, named = "", said = ""] = /^(\S+)\s+=\s+(.+)$/s.exec(text) ?? [];
  if (said !== "" && isKey(named)) {
    return { key: named, value: said };
  }
  const taken = new Set(notes.filter(({ kind }) => kind === "fact").map(({ id }) => id));
  const first = derivedKey(text);
  let key = first;
  for (let number = 2; taken.has(key); number++) {
    key = `${first}-${number}`;
  }
  return { key, value: text };
}

/** Parse a typed decision; its reason follows “because”, if there is one. */
export function decisionIn(text: string) {
  const [, decision = "", rationale = ""] = /^(.+?),?\s+because\s+(.+)$/is.exec(text) ?? [];
  return decision === "" ? { decision: text, rationale: null } : { decision, rationale };
}

/**
 * Order evidence by how well it fits a text: first the newest that shares a word with it, else the
 * newest message, then the rest by age. Duplicate texts appear once, and a file replaces the calls
 * that touched only that file.
 */
export function fitting(text: string, anchors: readonly Anchor[]): readonly Anchor[] {
  const wordsOf = (some: string) => some.toLowerCase().match(/[\p{L}\p{N}_]{4,}/gu) ?? [];
  const words = new Set(wordsOf(text));
  const files = new Set(anchors.filter(({ source }) => source === "file").map(({ ref }) => ref));
  const newest = anchors
    .filter(({ source, text: said }) => source === "file" || !files.has(said))
    .toSorted((one, other) => other.seq - one.seq);
  const best =
    newest.find((anchor) => wordsOf(anchor.text || anchor.ref).some((word) => words.has(word))) ??
    newest.find(({ source }) => source === "user");
  const ordered = best === undefined ? newest : [best, ...newest];
  const named = ordered.map(({ source, text: said, ref }) => `${source} ${said || ref}`);
  return ordered.filter((_, at) => named.indexOf(named[at] ?? "") === at);
}

/** Return the files that a fact depends on: its evidence, and the files that it names. */
export function dependenciesOf(
  text: string,
  evidence: Anchor,
  anchors: readonly Anchor[],
): readonly string[] {
  const files = anchors.filter(({ source }) => source === "file").map(({ ref }) => ref);
  const said = ` ${text} ${evidence.text} `;
  const names = (uri: string) => [uri, uri.split("/").at(-1) ?? uri];
  const isNamed = (uri: string) =>
    names(uri).some((name) => said.split(/[\s"'`“”,;()]+/).includes(name));
  const own = evidence.source === "file" ? [evidence.ref] : [];
  return [...new Set([...own, ...files.filter(isNamed)])].slice(0, MOST_DEPENDENCIES);
}

/** The server's limit on dependencies. */
const MOST_DEPENDENCIES = 16;

/** Return the first unused decision id of `d1`, `d2`, … */
export function freeDecisionId(notes: readonly Note[]): string {
  const taken = new Set(notes.map(({ id }) => id));
  let number = 1;
  while (taken.has(`d${number}`)) {
    number += 1;
  }
  return `d${number}`;
}

/** Check whether a text can be a key: letters and digits of any script, `. _ - / :`, in NFC. */
export function isKey(text: string): boolean {
  return (
    /^[\p{L}\p{N}._\-/:]+$/u.test(text) &&
    [...text].length <= MAX_KEY &&
    text.normalize("NFC") === text
  );
}

/** Return a file's URI in a checkpoint: relative if the file is in the session's folder. */
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

function cited({ source, ref }: Pick<Anchor, "source" | "ref">): object {
  return { source, ref };
}
