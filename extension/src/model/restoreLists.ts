/** The long lists about a restore: what its pack shows, what is referred to, what has changed. */

import type { RestoreDetails } from "../protocol.ts";
import type { Details } from "./pages.ts";
import { code, flag, moment, objects, type Section, table, type Value, word } from "./report.ts";
import { partName } from "./restore.ts";
import type { Say } from "./text.ts";

/** The text of the pack, what it shows and what it leaves out. */
export function packSections(details: RestoreDetails, say: Say): Section[] {
  const { included, deferred, pack, budget, packTokens } = details;
  const reasons: Record<string, string> = {
    budget: say("no tokens left"),
    filtered: say("done, or superseded by another"),
    missing: say("not there"),
    no_lines: say("the file has no such lines"),
    unreadable: say("not to be read"),
    bound: say("longer than a pinned content may be"),
  };
  const title = budget === null ? say("Carried items") : say("In the pack");
  const text: Section = {
    id: "pack",
    title: say("State pack, {0} of {1} tokens", packTokens ?? 0, budget ?? 0),
    count: null,
    isOpen: false,
    body:
      pack === null
        ? {
            kind: "sentence",
            text: say("Its text stood in the branch, which is gone or has changed."),
          }
        : { kind: "text", text: pack },
  };
  return [
    ...(budget === null ? [] : [text]),
    ...table(
      "included",
      title,
      [say("Part"), say("Item")],
      included.map(({ part, id }) => [partName(part, say), code(id)]),
    ),
    ...table(
      "deferred",
      say("Left out of the pack"),
      [say("Part"), say("Item"), say("Why")],
      deferred.map(({ part, id, reason }) => [
        partName(part, say),
        code(id),
        reasons[reason] ?? reason,
      ]),
    ),
  ];
}

/** What went over by name: files, their lines, patches and outputs, pins. */
export function referenceSections({ references, pinned }: RestoreDetails, say: Say): Section[] {
  const { files, chunks, system } = references;
  const yes = (is: boolean) => (is ? say("yes") : say("no"));
  return [
    ...table(
      "files",
      say("Files"),
      [say("File"), say("Changed"), say("Read by the model"), say("Bytes"), say("Hash")],
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
      say("Lines that were read"),
      [say("File"), say("Lines"), say("Hash")],
      objects(chunks).map((chunk) => [
        code(word(chunk, "uri")),
        say("{0} to {1}", word(chunk, "start"), word(chunk, "end")),
        hash(word(chunk, "hash")),
      ]),
    ),
    ...table(
      "system",
      say("Patches and tool outputs"),
      [say("Kind"), say("Name"), say("Hash")],
      objects(system).map((each) => [
        word(each, "kind") === "patch" ? say("patch") : say("tool output"),
        code(word(each, "id")),
        hash(word(each, "hash")),
      ]),
    ),
    ...table(
      "pinned",
      say("Pinned"),
      [say("File"), say("Lines"), say("Hash")],
      pinned.map((pin) => [
        code(word(pin, "uri")),
        word(pin, "start") === ""
          ? say("all")
          : say("{0} to {1}", word(pin, "start"), word(pin, "end")),
        hash(word(pin, "hash")),
      ]),
    ),
  ];
}

/** What is not as it was when the marker was made. */
export function differenceSections(
  { drift, missing, fallbacks }: RestoreDetails,
  say: Say,
): Section[] {
  return [
    ...table(
      "drift",
      say("Changed since the marker"),
      [say("File"), say("Then"), say("Now")],
      drift.map((each) => [
        code(word(each, "uri")),
        hash(word(each, "then")),
        hash(word(each, "now")),
      ]),
    ),
    ...table(
      "missing",
      say("No longer there"),
      [say("File"), say("Then")],
      missing.map((each) => [code(word(each, "uri")), hash(word(each, "then"))]),
    ),
    ...table(
      "fallbacks",
      say("Made do with"),
      [say("What"), say("File")],
      fallbacks.map((each) => [
        fallbackWords(word(each, "fallback"), say),
        code(word(each, "uri")),
      ]),
    ),
  ];
}

/** What was made do with; a soft branch that was to name the lines of its source may hold them. */
function fallbackWords(fallback: string, say: Say): string {
  switch (fallback) {
    case "weak_hash":
      return say("size and time in place of the content");
    case "file_only_store":
      return say("the session files alone");
    case "copied_legacy":
      return say("a copy of the lines: the source has an older format");
    case "copied_compressed":
      return say("a copy of the lines: the source is compressed");
    case "copied_windows":
      return say("a copy of the lines: the source was compacted");
    case "copied_in_base":
      return say("a copy of the lines: the turn stands in a file before that of the source");
    case "copied_damaged":
      return say("a copy of the lines: the source has bytes that are no text");
    case "earlier_unknown":
      return say("what the source began with: nothing tells what was read and changed before");
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
export function eventSections({ events }: Details, say: Say): Section[] {
  const rows = events.map((event): Value[] => {
    const own = Object.entries(event).filter(([name]) => !SHARED.has(name));
    const text = own.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ");
    return [moment(word(event, "at")), code(word(event, "type")), code(text)];
  });
  return table("events", say("Events"), [say("When"), say("What"), say("Facts")], rows);
}

/** A hash without what all of them begin with, short enough to compare by eye. */
function hash(text: string): Value {
  return code(text.replace(/^sha256:/, "").slice(0, 16));
}
