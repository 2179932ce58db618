/** Everything about a restore, as the sections of a page (AGN-68). */

import type { RestoreDetails } from "../protocol.ts";
import type { Details } from "./pages.ts";
import { code, facts, moment, objects, type Section, type Value, word } from "./report.ts";
import { modeLabel } from "./restore.ts";
import {
  differenceSections,
  eventSections,
  packSections,
  referenceSections,
} from "./restoreLists.ts";
import { knownState } from "./restoreState.ts";
import { plain, type Say } from "./text.ts";

/** All sections, in their order. */
export function detailSections(told: Details, say: Say): Section[] {
  const { details } = told;
  return [
    originSection(told, say),
    lineageSection(told, say),
    carriedSection(details, say),
    resetSection(details, say),
    ...packSections(details, say),
    ...knownState(details.state ?? told.state, details.modes, say),
    ...referenceSections(details, say),
    ...differenceSections(details, say),
    capsSection(details, say),
    ...eventSections(told, say),
  ];
}

/** A session by its title, where that is known. */
function session(id: string, title: string | null, there: boolean): Value {
  return { kind: "session", id, name: plain(title ?? "") || id, there };
}

function originSection({ details }: Details, say: Say): Section {
  const { sourceTurn: turn } = details;
  const source = session(details.sourceSessionId, details.sourceTitle, details.sourceAvailable);
  const branch = session(details.sessionId, details.branchTitle, details.branchAvailable);
  return facts(
    "origin",
    say("Where it came from"),
    [
      [say("Source"), source],
      [say("Branch"), branch],
      [say("Marker"), plain(details.label) || code(details.checkpointId)],
      [say("Marker ID"), code(details.checkpointId)],
      [say("Turn"), code(`${turn.turnId} (${turn.sessionId})`)],
      [say("Marked"), moment(details.markedAt)],
      [say("Restored"), moment(details.restoredAt)],
      [say("Mode"), modeLabel(details.mode, say)],
      [say("Reason"), details.reason],
      [say("Operation"), code(details.operationId)],
      [say("Version of the rules"), String(details.semantics)],
    ],
    true,
  );
}

/** The branch, its source, and so on up to the first session. */
function lineageSection({ details, lineage }: Details, say: Say): Section {
  const known = new Map(lineage.map((node) => [node.id, node]));
  const name = (id: string, title: string | null, there: boolean): Value => {
    const node = known.get(id);
    return node === undefined ? session(id, title, there) : session(id, node.title, node.available);
  };
  const ways: Record<string, string> = {
    compaction: say("by a compaction"),
    fork: say("by a fork"),
    subagent: say("as a subagent"),
    import: say("by a pack"),
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
  const head = [say("Session"), say("Opened at turn"), say("Marker")];
  const body = { kind: "table", head, rows: [...rows, [root, say("the first"), ""]] } as const;
  return { id: "lineage", title: say("Lineage"), count: body.rows.length, isOpen: true, body };
}

function carriedSection(details: RestoreDetails, say: Say): Section {
  const { files, chunks, system } = details.references;
  const shown = (part: string) => details.included.filter((item) => item.part === part).length;
  const left = (part: string) =>
    details.deferred.filter((item) => item.part === part && isLeftOut(item.reason)).length;
  const of = (part: string) =>
    details.pack === null && details.budget === null
      ? String(shown(part))
      : say("{0} in the pack, {1} left out", shown(part), left(part));
  return facts(
    "carried",
    say("Carried over"),
    [
      [say("Identity and lineage"), say("always")],
      [say("Notes"), of("notes")],
      [say("Files"), String(objects(files).length)],
      [say("Lines that were read"), String(objects(chunks).length)],
      [say("Patches and tool outputs"), String(objects(system).length)],
      [say("Pinned"), String(details.pinned.length)],
      [say("Conversation"), details.contextReset ? say("none") : say("up to the marker")],
    ],
    true,
  );
}

/** Whether a reason keeps an item out of a pack altogether; a pin is named there all the same. */
function isLeftOut(reason: string): boolean {
  return reason === "budget" || reason === "filtered";
}

function resetSection({ contextReset, windows }: RestoreDetails, say: Say): Section {
  const id = (name: string): Value => {
    const found = word(windows, name);
    return found === "" ? say("not known") : code(found);
  };
  return facts(
    "reset",
    say("What was reset"),
    [
      contextReset
        ? [say("Reset"), say("the context and the chain of the model; the source keeps both")]
        : [say("Reset"), say("nothing; the context went along")],
      [say("Window of the source"), id("source")],
      [say("First window of the branch"), id("first")],
      [say("Current window of the branch"), id("current")],
    ],
    true,
  );
}

function capsSection({ caps }: RestoreDetails, say: Say): Section {
  const rows = Object.entries(caps).map(([name, most]) => [name, String(most)] as const);
  return facts("caps", say("Limits of a view for this model"), rows);
}
