/** Everything about a restore, as the sections of a page (AGN-68). */

import type { RestoreDetails } from "../protocol.ts";
import { type Details, modeLabel, partName } from "./restore.ts";
import { plain } from "./text.ts";

/** All sections, in their order. */
export function detailSections(told: Details): Section[] {
  const { details } = told;
  return [
    originSection(told),
    lineageSection(told),
    carriedSection(details),
    resetSection(details),
    ...packSections(details),
    ...knownState(details.state ?? told.state, details.modes),
    ...referenceSections(details),
    ...differenceSections(details),
    capsSection(details),
    ...eventSections(told),
  ];
}

/** A session by its title, where that is known. */
function session(id: string, title: string | null, there: boolean): Value {
  return { kind: "session", id, name: plain(title ?? "") || id, there };
}

function originSection({ details }: Details): Section {
  const { sourceTurn: turn } = details;
  const source = session(details.sourceSessionId, details.sourceTitle, details.sourceAvailable);
  const branch = session(details.sessionId, details.branchTitle, details.branchAvailable);
  return facts(
    "origin",
    "Where it came from",
    [
      ["Source", source],
      ["Branch", branch],
      ["Marker", plain(details.label) || code(details.checkpointId)],
      ["Marker ID", code(details.checkpointId)],
      ["Turn", code(`${turn.turnId} (${turn.sessionId})`)],
      ["Marked", moment(details.markedAt)],
      ["Restored", moment(details.restoredAt)],
      ["Mode", modeLabel(details.mode)],
      ["Reason", details.reason],
      ["Operation", code(details.operationId)],
      ["Version of the rules", String(details.semantics)],
    ],
    true,
  );
}

/** The branch, its source, and so on up to the first session. */
function lineageSection({ details, lineage }: Details): Section {
  const known = new Map(lineage.map((node) => [node.id, node]));
  const name = (id: string, title: string | null, there: boolean): Value => {
    const node = known.get(id);
    return node === undefined ? session(id, title, there) : session(id, node.title, node.available);
  };
  const ways: Record<string, string> = {
    compaction: "by a compaction",
    fork: "by a fork",
    subagent: "as a subagent",
    import: "by a pack",
  };
  const own: [string, Value, string, string | null, boolean] = [
    details.sessionId,
    code(details.sourceTurn.turnId),
    details.checkpointId,
    details.branchTitle,
    details.branchAvailable,
  ];
  const above = objects(details.chain).map((link): typeof own => {
    const { sourceTurn } = link;
    const way = ways[word(link, "kind")] ?? code(word(sourceTurn, "turnId"));
    return [word(link, "sessionId"), way, word(link, "checkpointId"), null, true];
  });
  const links = [own, ...above];
  const rows = links.map(([id, way, checkpoint, title, there]): Value[] => [
    name(id, title, there),
    way,
    code(checkpoint),
  ]);
  // What the last one was opened from is no branch of ours: it is where all of it began.
  const { sourceTurn } = objects(details.chain).at(-1) ?? {};
  const first = word(sourceTurn, "sessionId");
  const root: Value =
    first === ""
      ? session(details.sourceSessionId, details.sourceTitle, details.sourceAvailable)
      : name(first, null, true);
  const head = ["Session", "Opened at turn", "Marker"];
  const body = { kind: "table", head, rows: [...rows, [root, "the first", ""]] } as const;
  return { id: "lineage", title: "Lineage", count: body.rows.length, isOpen: true, body };
}

function carriedSection(details: RestoreDetails): Section {
  const { files, chunks, system } = details.references;
  const shown = (part: string) => details.included.filter((item) => item.part === part).length;
  const left = (part: string) =>
    details.deferred.filter((item) => item.part === part && isLeftOut(item.reason)).length;
  const of = (part: string) =>
    details.pack === null && details.budget === null
      ? String(shown(part))
      : `${shown(part)} in the pack, ${left(part)} left out`;
  return facts(
    "carried",
    "Carried over",
    [
      ["Identity and lineage", "always"],
      ["Notes", of("notes")],
      ["Files", String(objects(files).length)],
      ["Lines that were read", String(objects(chunks).length)],
      ["Patches and tool outputs", String(objects(system).length)],
      ["Pinned", String(details.pinned.length)],
      ["Conversation", details.contextReset ? "none" : "up to the marker"],
    ],
    true,
  );
}

/** Whether a reason keeps an item out of a pack altogether; a pin is named there all the same. */
function isLeftOut(reason: string): boolean {
  return reason === "budget" || reason === "filtered";
}

function resetSection({ contextReset, windows }: RestoreDetails): Section {
  const id = (name: string): Value => {
    const found = word(windows, name);
    return found === "" ? "not known" : code(found);
  };
  return facts(
    "reset",
    "What was reset",
    [
      contextReset
        ? ["Reset", "the context and the chain of the model; the source keeps both"]
        : ["Reset", "nothing; the context went along"],
      ["Window of the source", id("source")],
      ["First window of the branch", id("first")],
      ["Current window of the branch", id("current")],
    ],
    true,
  );
}

function capsSection({ caps }: RestoreDetails): Section {
  const rows = Object.entries(caps).map(([name, most]) => [name, String(most)] as const);
  return facts("caps", "Limits of a view for this model", rows);
}

/** The text of the pack, what it shows and what it leaves out. */
export function packSections(details: RestoreDetails): Section[] {
  const { included, deferred, pack, budget, packTokens } = details;
  const reasons: Record<string, string> = {
    budget: "no tokens left",
    filtered: "done, or superseded by another",
    missing: "not there",
    no_lines: "the file has no such lines",
    unreadable: "not to be read",
    bound: "longer than a pinned content may be",
  };
  const title = budget === null ? "Carried items" : "In the pack";
  const text: Section = {
    id: "pack",
    title: `State pack, ${packTokens ?? 0} of ${budget ?? 0} tokens`,
    count: null,
    isOpen: false,
    body:
      pack === null
        ? {
            kind: "sentence",
            text: "Its text stood in the branch, which is gone or has changed.",
          }
        : { kind: "text", text: pack },
  };
  return [
    ...(budget === null ? [] : [text]),
    ...table(
      "included",
      title,
      ["Part", "Item"],
      included.map(({ part, id }) => [partName(part), code(id)]),
    ),
    ...table(
      "deferred",
      "Left out of the pack",
      ["Part", "Item", "Why"],
      deferred.map(({ part, id, reason }) => [partName(part), code(id), reasons[reason] ?? reason]),
    ),
  ];
}

/** What went over by name: files, their lines, patches and outputs, pins. */
export function referenceSections({ references, pinned }: RestoreDetails): Section[] {
  const { files, chunks, system } = references;
  const yes = (is: boolean) => (is ? "yes" : "no");
  return [
    ...table(
      "files",
      "Files",
      ["File", "Changed", "Read by the model", "Bytes", "Hash"],
      objects(files).map((file) => [
        code(word(file, "uri")),
        yes(flag(file, "touched")),
        yes(flag(file, "sentToModel")),
        word(file, "size"),
        hash(word(file, "hash")),
      ]),
    ),
    ...table(
      "chunks",
      "Lines that were read",
      ["File", "Lines", "Hash"],
      objects(chunks).map((chunk) => [
        code(word(chunk, "uri")),
        `${word(chunk, "start")} to ${word(chunk, "end")}`,
        hash(word(chunk, "hash")),
      ]),
    ),
    ...table(
      "system",
      "Patches and tool outputs",
      ["Kind", "Name", "Hash"],
      objects(system).map((each) => [
        word(each, "kind") === "patch" ? "patch" : "tool output",
        code(word(each, "id")),
        hash(word(each, "hash")),
      ]),
    ),
    ...table(
      "pinned",
      "Pinned",
      ["File", "Lines", "Hash"],
      pinned.map((pin) => [
        code(word(pin, "uri")),
        word(pin, "start") === "" ? "all" : `${word(pin, "start")} to ${word(pin, "end")}`,
        hash(word(pin, "hash")),
      ]),
    ),
  ];
}

/** What is not as it was when the marker was made. */
export function differenceSections({ drift, missing, fallbacks }: RestoreDetails): Section[] {
  return [
    ...table(
      "drift",
      "Changed since the marker",
      ["File", "Then", "Now"],
      drift.map((each) => [
        code(word(each, "uri")),
        hash(word(each, "then")),
        hash(word(each, "now")),
      ]),
    ),
    ...table(
      "missing",
      "No longer there",
      ["File", "Then"],
      missing.map((each) => [code(word(each, "uri")), hash(word(each, "then"))]),
    ),
    ...table(
      "fallbacks",
      "Made do with",
      ["What", "File"],
      fallbacks.map((each) => [fallbackWords(word(each, "fallback")), code(word(each, "uri"))]),
    ),
  ];
}

/** What was made do with; a soft branch that was to name the lines of its source may hold them. */
function fallbackWords(fallback: string): string {
  switch (fallback) {
    case "weak_hash":
      return "size and time in place of the content";
    case "file_only_store":
      return "the session files alone";
    case "copied_legacy":
      return "a copy of the lines: the source has an older format";
    case "copied_compressed":
      return "a copy of the lines: the source is compressed";
    case "copied_windows":
      return "a copy of the lines: the source was compacted";
    case "copied_in_base":
      return "a copy of the lines: the turn stands in a file before that of the source";
    case "copied_damaged":
      return "a copy of the lines: the source has bytes that are no text";
    case "earlier_unknown":
      return "what the source began with: nothing tells what was read and changed before";
    default:
      return fallback;
  }
}

/** The fields that all events of an operation share. */
const SHARED = new Set([
  ...["type", "at", "operationId", "sessionId", "sourceSessionId", "checkpointId"],
  ...["sourceTurn", "restoreMode", "userId", "orgId", "step", "digest", "label"],
]);

/** What was written down while it happened. */
export function eventSections({ events }: Details): Section[] {
  const rows = events.map((event): Value[] => {
    const own = Object.entries(event).filter(([name]) => !SHARED.has(name));
    const text = own.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ");
    return [moment(word(event, "at")), code(word(event, "type")), code(text)];
  });
  return table("events", "Events", ["When", "What", "Facts"], rows);
}

/** A hash without what all of them begin with, short enough to compare by eye. */
function hash(text: string): Value {
  return code(text.replace(/^sha256:/, "").slice(0, 16));
}

/** The sections about it; few where the state can no longer be told. */
export function knownState(state: unknown, modes: readonly Fields[]): Section[] {
  const { task, plan, decisions, facts: found } = Object(state) as Fields;
  const { steps: all, done: ticks } = Object(plan) as Fields;
  const done = Object(ticks) as Fields;
  const steps = objects(all).map((step): Value[] => [
    done[word(step, "id")] === true ? "done" : "open",
    word(step, "text"),
  ]);
  const decided = objects(decisions).map((each): Value[] => [
    code(word(each, "decisionId")),
    word(each, "decision"),
    word(each, "supersededBy") === "" ? "" : "replaced",
  ]);
  const kept = Object.entries(Object(found) as Fields).map(([key, fact]): Value[] => [
    code(key),
    word(fact, "value"),
  ]);
  const goal = plain(word(task, "text"));
  return [
    ...(goal === "" ? [] : [facts("state", "Known at the turn", [["Task", goal]], true)]),
    ...table("plan", "Plan", ["Standing", "Step"], steps),
    ...table("decisions", "Decisions", ["ID", "Decision", "Standing"], decided),
    ...table("facts", "Facts", ["Key", "Value"], kept),
    ...table(
      "modes",
      "Modes",
      ["Mode", "From record", "Turn"],
      modes.map((each) => [word(each, "mode"), word(each, "seq"), code(word(each, "turnId"))]),
    ),
  ];
}

/** One thing to show; a string is plain text. */
export type Value =
  | string
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "time"; readonly stamp: string }
  /** A session to go to; one that is gone is only named. */
  | {
      readonly kind: "session";
      readonly id: string;
      readonly name: string;
      readonly there: boolean;
    };

export type Body =
  | { readonly kind: "facts"; readonly rows: readonly (readonly [string, Value])[] }
  | {
      readonly kind: "table";
      readonly head: readonly string[];
      readonly rows: readonly (readonly Value[])[];
    }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "sentence"; readonly text: string };

export interface Section {
  /** Stays the same in every language: what a person opened stays open. */
  readonly id: string;
  readonly title: string;
  /** How many there are, where that is worth saying. */
  readonly count: number | null;
  readonly isOpen: boolean;
  readonly body: Body;
}

/** A section of one fact a row. */
export function facts(
  id: string,
  title: string,
  rows: readonly (readonly [string, Value])[],
  isOpen = false,
): Section {
  return { id, title, count: null, isOpen, body: { kind: "facts", rows } };
}

/** A section that lists things, none where there are none. */
export function table(
  id: string,
  title: string,
  head: readonly string[],
  rows: readonly (readonly Value[])[],
  isOpen = false,
): Section[] {
  const body = { kind: "table", head, rows } as const;
  return rows.length === 0 ? [] : [{ id, title, count: rows.length, isOpen, body }];
}

/** A text in the letters of a terminal. */
export function code(text: string): Value {
  return { kind: "code", text };
}

/** A moment. */
export function moment(stamp: string): Value {
  return { kind: "time", stamp };
}

// --- what the records of the wire leave open -----------------------------------------------------

export type Fields = Readonly<Record<string, unknown>>;

/** Read a list of objects out of an answer; what is none is left out. */
export function objects(value: unknown): Fields[] {
  return Array.isArray(value)
    ? value.filter((each) => typeof each === "object" && each !== null)
    : [];
}

/** Read a field as a word, empty where there is none. */
export function word(fields: unknown, name: string): string {
  const value = (Object(fields) as Fields)[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Read a field that is yes or no. */
export function flag(fields: unknown, name: string): boolean {
  return (Object(fields) as Fields)[name] === true;
}
