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
