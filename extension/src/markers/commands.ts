/** Commands for markers and turns. */

import * as vscode from "vscode";
import { MAX_LABEL } from "../client/limits.ts";
import type { Marker, SessionSummary, TurnEntry } from "../client/protocol.ts";
import { showUndoable } from "../client/requests.ts";
import { type App, type Commands, onSession, type Target } from "../common/app.ts";
import {
  type Action,
  action,
  askToDo,
  confirmLoss,
  inform,
  runCommand,
  showDone,
} from "../common/messages.ts";
import { cut, plain } from "../common/model/text.ts";
import {
  askLabel,
  askMarker,
  askPlace,
  askTurn,
  type ChosenTurn,
  titleFor,
  turnOf,
} from "../common/pickers.ts";
import { showChanges } from "../page/changes.ts";
import type { TurnAction } from "../page/model/page.ts";
import { restoreFilesTo } from "../restore/files.ts";
import { restoreOneOf } from "../restore/oneFile.ts";
import {
  labelOf,
  type Place,
  placeNow,
  placeOfMarker,
  placeOfTurn,
  type TurnActionName,
  turnActions,
} from "./model/texts.ts";

export function markerCommands(app: App): Commands {
  return {
    addMarker: onSession(app, (session) => add(app, session)),
    renameMarker: onSession(app, (session, marker) => rename(app, session, marker)),
    removeMarker: onSession(app, (session, marker) => remove(app, session, marker)),
    copyMarkerId: async (target?: Target) => {
      if (target?.kind === "marker") {
        await vscode.env.clipboard.writeText(target.marker.checkpointId);
      }
    },
    showTurns: onSession(app, (session) => showTurns(app, session)),
    compareStates: onSession(app, (session, marker) => compare(app, session, marker)),
  };
}

async function add(app: App, session: SessionSummary): Promise<void> {
  const chosen = await askTurn(app.server, session, "Add a Marker", "toMark");
  if (chosen !== undefined) {
    await mark(app, session, chosen.turn);
  }
}

async function showTurns(app: App, session: SessionSummary): Promise<void> {
  const chosen = await askTurn(app.server, session, "Turns", "toSee");
  if (chosen !== undefined) {
    await askAction(app, session, chosen);
  }
}

/** Ask for an action on a turn; `isOnCard`: the page has buttons for some of them. */
async function askAction(
  app: App,
  session: SessionSummary,
  chosen: ChosenTurn,
  isOnCard = false,
): Promise<void> {
  const title = titleFor(`Turn ${chosen.turn.number}`, session);
  await askToDo(title, actionsOf(app, session, chosen, isOnCard));
}

async function rename(app: App, session: SessionSummary, marker: Marker | null): Promise<void> {
  const title = "Rename a Marker";
  const meant = marker ?? (await askMarker(app.server, session, title));
  const label = meant && (await askLabel(title, cut(labelOf(meant), MAX_LABEL)));
  if (meant && label) {
    const { checkpointId } = meant;
    await app.server.request("relabel", { sessionId: session.sessionId, checkpointId, label });
  }
}

async function remove(app: App, session: SessionSummary, marker: Marker | null): Promise<void> {
  const meant = marker ?? (await askMarker(app.server, session, "Remove a Marker"));
  if (meant === undefined) {
    return;
  }
  const { checkpointId, turnId, turnNumber, label } = meant;
  const { sessionId } = session;
  const canReturn = meant.sessionId === sessionId && turnNumber !== null;
  const why = "Its turn is not in this session, so the marker cannot be set again.";
  if (
    canReturn ||
    (await confirmLoss("Remove this marker?", `${labelOf(meant)}\n${why}`, "Remove"))
  ) {
    await app.server.request("unmark", { sessionId, checkpointId });
    const done = `Marker “${labelOf(meant)}” removed.`;
    const back = async () => void (await app.server.request("mark", { sessionId, label, turnId }));
    canReturn ? showUndoable(done, back) : showDone(done);
  }
}

async function compare(app: App, session: SessionSummary, marker: Marker | null): Promise<void> {
  if (marker !== null && marker.sessionId !== session.sessionId) {
    await inform("This marker is on a turn of the original session. Compare it there.");
    return;
  }
  const one =
    marker === null
      ? await askPlace(app.server, session, "Compare States: First State", null)
      : placeOfMarker(marker);
  if (one !== undefined) {
    await compareWith(app, session, one);
  }
}

async function compareWith(app: App, session: SessionSummary, one: Place): Promise<void> {
  const other = await askPlace(app.server, session, `Compare “${one.words}” with`, one);
  if (other !== undefined) {
    await app.documents.compareStates(session, one, other);
  }
}

/** Run an action of the session page on the end of a turn. */
export async function onTurn(
  app: App,
  session: SessionSummary,
  turnId: string,
  action: TurnAction,
): Promise<void> {
  const chosen = await turnOf(app.server, session, turnId);
  if (chosen === undefined) {
    await inform("This turn was rolled back.");
    return;
  }
  const { turn } = chosen;
  if (action === "mark") {
    await mark(app, session, turn);
  } else if (action === "restore") {
    await restore(app, session, chosen);
  } else if (action === "changes") {
    await showChanges(app, session, { turnId, words: `turn ${turn.number}` });
  } else if (action === "compare") {
    await compareWith(app, session, placeOfTurn(session.sessionId, turn));
  } else {
    await askAction(app, session, chosen, true);
  }
}

function actionsOf(
  app: App,
  session: SessionSummary,
  chosen: ChosenTurn,
  isOnCard: boolean,
): readonly Action[] {
  const { documents, reports } = app;
  const { turn } = chosen;
  const here = placeOfTurn(session.sessionId, turn);
  const now = placeNow(session.sessionId, "now");
  const end = { sessionId: session.sessionId, turnId: turn.turnId, checkpointId: null };
  const all: Record<TurnActionName, Action> = {
    mark: action("bookmark", "Add Marker…", () => mark(app, session, turn)),
    restore: action(
      "git-branch",
      "Restore from Here…",
      () => restore(app, session, chosen),
      "Starts a new session from this turn. This one stays as it is.",
    ),
    restoreFiles: action(
      "discard",
      "Restore Files…",
      () => restoreFilesTo(app, session, end),
      "Brings the ticked files back to the end of this turn.",
    ),
    restoreFile: action("go-to-file", "Restore One File…", () => restoreOneOf(app, session, end)),
    view: action(
      "open-preview",
      "Show Checkpoint as Text",
      async () => {
        reports.open("checkpoint", { sessionId: here.sessionId, turnId: turn.turnId });
      },
      "The text for a model about the session at the end of this turn.",
    ),
    json: action("json", "Show Checkpoint as JSON", () => documents.openJson(session, here)),
    changes: action("diff-multiple", "Show Changed Files", () =>
      showChanges(app, session, { turnId: turn.turnId, words: `turn ${turn.number}` }),
    ),
    compareNow: action("diff", "Compare with Now", () =>
      documents.compareStates(session, here, now),
    ),
    compare: action("compare-changes", "Compare with…", () => compareWith(app, session, here)),
  };
  return turnActions(turn.ended, isOnCard).map((name) => all[name]);
}

/** Restore from the newest marker on this turn, or from a new one. */
async function restore(
  app: App,
  session: SessionSummary,
  { turn, markers }: ChosenTurn,
): Promise<void> {
  const there = markers.findLast(({ turnNumber }) => turnNumber === turn.number);
  const marker = there ?? (await mark(app, session, turn, `Restore from Turn ${turn.number}`));
  if (marker !== undefined) {
    const { sessionId } = session;
    await runCommand("restoreMarker", { sessionId, checkpointId: marker.checkpointId });
  }
}

async function mark(
  app: App,
  session: SessionSummary,
  { number, turnId, task }: TurnEntry,
  what = `Add a Marker on Turn ${number}`,
): Promise<Marker | undefined> {
  const label = await askLabel(
    titleFor(what, session),
    cut(plain(task ?? ""), 60) || `Turn ${number}`,
  );
  if (!label) {
    return undefined;
  }
  const { sessionId } = session;
  const marker = await app.server.request("mark", { sessionId, label, turnId });
  showDone(`Marker added on turn ${number}`);
  return marker;
}
