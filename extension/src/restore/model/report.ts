/** The details of a restore, as sections of a page (AGN-68). */

import type { PackItem, RestoreDetails } from "../../client/protocol.ts";
import { plain } from "../../common/model/text.ts";
import { madeWords, turnWords } from "../../sessions/model/branches.ts";
import { type Details, itemName, modeLabel, partName } from "./preview.ts";

export function detailSections(shown: Details): Section[] {
  const { details } = shown;
  return [
    originSection(shown),
    lineageSection(shown),
    carriedSection(details),
    resetSection(details),
    ...packSections(shown),
    ...knownState(details.state ?? shown.state, details.modes),
    ...referenceSections(details),
    ...differenceSections(details),
    capsSection(details),
    idSection(shown),
  ];
}

function session(id: string, title: string | null, there: boolean): Value {
  return { kind: "session", id, name: plain(title ?? "") || id, there };
}

function originSection({ details }: Details): Section {
  const source = session(details.sourceSessionId, details.sourceTitle, details.sourceAvailable);
  const branch = session(details.sessionId, details.branchTitle, details.branchAvailable);
  const rows: Row[] = [
    ["Source", source],
    ...sourceState(details.sourceUnchanged),
    ["Branch", branch],
    ["Marker", plain(details.label) || code(details.checkpointId)],
    ["Marked", moment(details.markedAt)],
    ["Restored", moment(details.restoredAt)],
    ["Mode", modeLabel(details.mode)],
    ["Reason", details.reason],
  ];
  return facts("origin", "Where it came from", rows, true);
}

/** Says whether the source still begins with the records that were restored. */
function sourceState(unchanged: boolean | null): Row[] {
  if (unchanged === null) {
    return [];
  }
  return [
    ["Restored records", unchanged ? "unchanged in the source" : "changed in the source since"],
  ];
}

/** What only a program or a report of a fault needs. */
function idSection({ details }: Details): Section {
  const { sourceTurn: turn, windows } = details;
  const above = objects(details.chain).map((link): Row => {
    const { sourceTurn: from } = link;
    const ends = `${word(from, "turnId")} (${word(from, "sessionId")}) ${word(link, "checkpointId")}`;
    return [`Turn and marker of ${word(link, "sessionId")}`, code(ends.trim())];
  });
  const window = (name: string): Value => code(word(windows, name) || "not known");
  const rows: Row[] = [
    ["Operation", code(details.operationId)],
    ["Marker", code(details.checkpointId)],
    ["Turn", code(`${turn.turnId} (${turn.sessionId})`)],
    ...above,
    ["Window of the source", window("source")],
    ["First window of the branch", window("first")],
    ["Current window of the branch", window("current")],
  ];
  return facts("ids", "Technical details", rows);
}

/** The branch and its ancestors up to the first session. */
function lineageSection({ details, lineage }: Details): Section {
  const known = new Map(lineage.map((node) => [node.id, node]));
  const name = (id: string, title: string | null, there: boolean): Value => {
    const node = known.get(id);
    return node === undefined ? session(id, title, there) : session(id, node.title, node.available);
  };
  const made = (id: string, kind: string): string => {
    const link = known.get(id)?.link ?? null;
    return `${madeWords(kind, null)}${link === null ? "" : turnWords(link)}`;
  };
  const { sessionId, branchTitle, branchAvailable } = details;
  const rows: Value[][] = [
    [name(sessionId, branchTitle, branchAvailable), made(sessionId, "restore")],
    ...objects(details.chain).map((link) => {
      const id = word(link, "sessionId");
      return [name(id, null, true), made(id, word(link, "kind") || "restore")];
    }),
  ];
  // The source of the last link is the session where the chain began.
  const { sourceTurn } = objects(details.chain).at(-1) ?? {};
  const first = word(sourceTurn, "sessionId");
  const root: Value =
    first === ""
      ? session(details.sourceSessionId, details.sourceTitle, details.sourceAvailable)
      : name(first, null, true);
  const head = ["Session", "How it was made"];
  const body = { kind: "table", head, rows: [...rows, [root, "the original session"]] } as const;
  return { id: "lineage", title: "Lineage", count: body.rows.length, isOpen: true, body };
}

function carriedSection(details: RestoreDetails): Section {
  const { chunks, system } = details.references;
  const { included, deferred } = details;
  const told = [...included, ...deferred.filter(({ reason }) => reason === "bound")];
  const left = deferred.filter(({ reason }) => reason === "budget");
  const of = (part: string) => {
    // A file is counted once, also where the model read some of its lines alone.
    const isIts = (item: PackItem) => item.part === part && !item.id.startsWith("reread:");
    const shown = told.filter(isIts).length;
    const out = left.filter(isIts).length;
    if (shown + out === 0) {
      return "none";
    }
    return details.budget === null ? String(shown) : `${shown} in the pack, ${out} left out`;
  };
  const rows: Row[] = [
    ["Identity and lineage", "always"],
    ["Notes", of("notes")],
    ["Files", of("files")],
    ["Lines that were read", String(objects(chunks).length)],
    ["Patches and tool outputs", String(objects(system).length)],
    ["Pinned", of("pinned")],
    ...(details.contextReset
      ? ([
          ["Commands", of("commands")],
          ["Last messages", of("window")],
        ] as const)
      : []),
    ["Conversation", details.contextReset ? "none" : "up to the marker"],
  ];
  return facts("carried", "Carried over", rows, true);
}

function resetSection({ contextReset }: RestoreDetails): Section {
  const all = "The context. The original session keeps its own.";
  const rows: Row[] = [["Reset", contextReset ? all : "Nothing. The context was kept."]];
  return facts("reset", "What was reset", rows, true);
}

function capsSection({ caps }: RestoreDetails): Section {
  const rows = Object.entries(caps).map(([name, most]) => [name, String(most)] as const);
  return facts("caps", "Limits of a view for this model", rows);
}

function packSections({ details, state }: Details): Section[] {
  const { included, deferred, pack, budget, packTokens } = details;
  const notes = notesIn(details.state ?? state);
  const reasons: Record<string, string> = {
    budget: "no tokens left",
    filtered: "done, superseded by another, or never quoted",
    evicted: "newer ones took its place",
    missing: "not there",
    no_lines: "the file has no such lines",
    unreadable: "not to be read",
    bound: "shortened: longer than it may be",
  };
  const gone = "Its text stood in the branch, which is gone or has changed.";
  const body: Body =
    pack === null ? { kind: "sentence", text: gone } : { kind: "text", text: pack };
  const title = `State pack, ${packTokens ?? 0} of ${budget ?? 0} tokens`;
  const part: Column = ["Part", (each) => partName(word(each, "part"))];
  const item: Column = [
    "Item",
    (each) => {
      const [part, id] = [word(each, "part"), word(each, "id")];
      return plain((part === "notes" ? notes.get(id) : undefined) ?? itemName({ part, id }));
    },
  ];
  // Only the first is counted as left out, here and in the preview (NUM-2).
  const of = (reason: string) => deferred.filter((each) => each.reason === reason);
  const others = deferred.filter(({ reason }) => reason !== "budget" && reason !== "bound");
  const why: Column = ["Why", (each) => reasons[word(each, "reason")] ?? word(each, "reason")];
  return [
    ...(budget === null ? [] : [{ id: "pack", title, count: null, isOpen: false, body }]),
    ...list("included", budget === null ? "Carried items" : "In the pack", included, part, item),
    ...list("deferred", "Left out of the pack", of("budget"), part, item, why),
    ...list("shortened", "Shortened in the pack", of("bound"), part, item, why),
    ...list("unquoted", "Never part of the pack", others, part, item, why),
  ];
}

/** The texts of steps and decisions, by the ids that their items have. */
function notesIn(state: unknown): ReadonlyMap<string, string> {
  const { plan, decisions } = Object(state) as Fields;
  const { steps } = Object(plan) as Fields;
  return new Map([
    ...objects(steps).map((each) => [`step:${word(each, "id")}`, word(each, "text")] as const),
    ...objects(decisions).map(
      (each) => [`decision:${word(each, "decisionId")}`, word(each, "decision")] as const,
    ),
  ]);
}

/** What was copied as references: files, lines, patches, outputs, pins. */
function referenceSections({ references, pinned }: RestoreDetails): Section[] {
  const { files, chunks, system } = references;
  const file = coded("File", "uri");
  const hash = hashed("Hash", "hash");
  const lines: Column = [
    "Lines",
    (each) =>
      word(each, "start") === "" ? "all" : `${word(each, "start")} to ${word(each, "end")}`,
  ];
  const kind = (each: Fields) => (word(each, "kind") === "patch" ? "patch" : "tool output");
  const use = [yes("Changed", "touched"), yes("Read by the model", "sentToModel")];
  const name = coded("Name", "id");
  return [
    ...list("files", "Files", files, file, ...use, written("Bytes", "size"), hash),
    ...list("chunks", "Lines that were read", chunks, file, lines, hash),
    ...list("system", "Patches and tool outputs", system, ["Kind", kind], name, hash),
    ...list("pinned", "Pinned", pinned, file, lines, hash),
  ];
}

function differenceSections({ drift, missing, fallbacks }: RestoreDetails): Section[] {
  const file = coded("File", "uri");
  const then = hashed("Then", "then");
  const what = (each: Fields) => FALLBACKS[word(each, "fallback")] ?? word(each, "fallback");
  return [
    ...list("drift", "Changed since the marker", drift, file, then, hashed("Now", "now")),
    ...list("missing", "No longer there", missing, file, then),
    ...list("fallbacks", "Replacements", fallbacks, ["What", what], file),
  ];
}

/** Texts for fallbacks; in a soft restore of earlier builds the branch may copy lines of the source. */
const FALLBACKS: Readonly<Record<string, string>> = {
  weak_hash: "size and time in place of the content",
  file_only_store: "the session files alone",
  copied_legacy: "a copy of the lines: the source has an older format",
  copied_compressed: "a copy of the lines: the source is compressed",
  copied_windows: "a copy of the lines: the source was compacted",
  copied_in_base: "a copy of the lines: the turn is in a file before the source's",
  copied_damaged: "a copy of the lines: the source is not valid text",
  earlier_unknown: "what the source began with: what was read and changed before is not known",
};

function knownState(state: unknown, modes: readonly Fields[]): Section[] {
  const { task, plan, decisions, facts: recorded } = Object(state) as Fields;
  const { steps, done } = Object(plan) as Fields;
  const isDone = (step: Fields) => (Object(done) as Fields)[word(step, "id")] === true;
  const found = Object.entries(Object(recorded) as Fields);
  const known = found.map(([key, fact]) => ({ key, value: word(fact, "value") }));
  const goal = plain(word(task, "text"));
  const progress: Column = ["Standing", (step) => (isDone(step) ? "done" : "open")];
  const decided = [coded("ID", "decisionId"), written("Decision", "decision")];
  const standing = (each: Fields) => (word(each, "supersededBy") === "" ? "" : "replaced");
  const since = [written("From record", "seq"), coded("Turn", "turnId")];
  return [
    ...(goal === "" ? [] : [facts("state", "Known at the turn", [["Task", goal]], true)]),
    ...list("plan", "Plan", steps, progress, written("Step", "text")),
    ...list("decisions", "Decisions", decisions, ...decided, ["Standing", standing]),
    ...list("facts", "Facts", known, coded("Key", "key"), written("Value", "value")),
    ...list("modes", "Modes", modes, written("Mode", "mode"), ...since),
  ];
}

// --- what sections are made of -------------------------------------------------------------------

export type Value =
  | string
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "time"; readonly stamp: string }
  /** A link to a session, or only its name if it is gone. */
  | {
      readonly kind: "session";
      readonly id: string;
      readonly name: string;
      readonly there: boolean;
    };

export type Body =
  | { readonly kind: "facts"; readonly rows: readonly Row[] }
  | {
      readonly kind: "table";
      readonly head: readonly string[];
      readonly rows: readonly (readonly Value[])[];
    }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "sentence"; readonly text: string };

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly count: number | null;
  readonly isOpen: boolean;
  readonly body: Body;
}

type Row = readonly [string, Value];

function facts(id: string, title: string, rows: readonly Row[], isOpen = false): Section {
  return { id, title, count: null, isOpen, body: { kind: "facts", rows } };
}

/** A column: its heading, and the value for an item. */
type Column = readonly [string, (each: Fields) => Value];

/** A table with a row for each item; no section without items. */
function list(id: string, title: string, items: unknown, ...columns: Column[]): Section[] {
  const rows = objects(items).map((each) => columns.map(([, show]) => show(each)));
  const body = { kind: "table", head: columns.map(([name]) => name), rows } as const;
  return rows.length === 0 ? [] : [{ id, title, count: rows.length, isOpen: false, body }];
}

function written(name: string, field: string): Column {
  return [name, (each) => word(each, field)];
}

function coded(name: string, field: string): Column {
  return [name, (each) => code(word(each, field))];
}

function yes(name: string, field: string): Column {
  return [name, (each) => (each[field] === true ? "yes" : "no")];
}

/** The first digits of a hash, without its prefix. */
function hashed(name: string, field: string): Column {
  const digits = (each: Fields) => word(each, field).replace(/^sha256:/, "");
  return [name, (each) => code(digits(each).slice(0, 16))];
}

function code(text: string): Value {
  return { kind: "code", text };
}

function moment(stamp: string): Value {
  return { kind: "time", stamp };
}

// --- what the records of the wire leave open -----------------------------------------------------

type Fields = Readonly<Record<string, unknown>>;

/** The objects in a list of an answer. */
function objects(value: unknown): Fields[] {
  return Array.isArray(value)
    ? value.filter((each) => typeof each === "object" && each !== null)
    : [];
}

/** A field as text; empty without one. */
function word(fields: unknown, name: string): string {
  const value = (Object(fields) as Fields)[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}
