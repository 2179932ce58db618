/** The long lists about a restore: what its pack shows, what is referred to, what has changed. */

import type { RestoreDetails } from "../protocol.ts";
import type { Details } from "./pages.ts";
import { code, flag, moment, objects, type Section, table, type Value, word } from "./report.ts";
import { partName } from "./restore.ts";

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
