/** Pickers for turns, markers, states and branches. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { Branch, Marker, SessionSummary, TurnEntry } from "../client/protocol.ts";
import { workspacePaths } from "../client/settings.ts";
import {
  labelOf,
  labelProblem,
  markerState,
  type Place,
  placeNow,
  placeOfMarker,
  placeOfTurn,
  type TurnChoice,
  turnChoices,
} from "../markers/model/texts.ts";
import { titleOf } from "../sessions/model/branches.ts";
import { inform, runCommand } from "./messages.ts";
import { age, cut, dotted, iconless, subject } from "./model/text.ts";

export interface ChosenTurn {
  readonly turn: TurnEntry;
  readonly markers: readonly Marker[];
}

/** Ask for a turn; only ended turns are offered for a marker. */
export async function askTurn(
  server: Server,
  session: SessionSummary,
  title: string,
  purpose: "toMark" | "toSee",
): Promise<ChosenTurn | undefined> {
  const { turns, markers } = await turnsOf(server, session);
  const items = turnChoices(turns, markers, Date.now())
    .filter(({ turn }) => purpose === "toSee" || turn.ended)
    .map((choice) => ({ ...rowOf(choice, markers), turn: choice.turn, markers }));
  if (items.length === 0) {
    await inform(`This session has no turn${turns.length === 0 ? "" : " that has ended"} yet.`);
    return undefined;
  }
  return vscode.window.showQuickPick(items, {
    title: titleFor(title, session),
    placeHolder: "Which turn? The newest is at the top.",
    matchOnDescription: true,
    matchOnDetail: true,
  });
}

export async function askLabel(title: string, value: string): Promise<string | undefined> {
  const validateInput = (text: string) => labelProblem(text);
  const prompt = "The name of the marker";
  const options = { title, prompt, value, ignoreFocusOut: true, validateInput };
  return (await vscode.window.showInputBox(options))?.trim();
}

export async function askMarker(
  server: Server,
  session: SessionSummary,
  title: string,
): Promise<Marker | undefined> {
  const { items: markers } = await server.request("marks", { sessionId: session.sessionId });
  if (markers.length === 0) {
    const { sessionId } = session;
    await inform("This session has no marker yet.", {
      "Add Marker…": () => runCommand("addMarker", { sessionId }),
    });
    return undefined;
  }
  const items = [...markers]
    .reverse()
    .map((marker) => ({ ...markerItem(marker, session), marker }));
  const options = { title: titleFor(title, session), matchOnDescription: true };
  return (await vscode.window.showQuickPick(items, options))?.marker;
}

/** Ask for a state: now, at a marker, or at the end of a turn. */
export async function askPlace(
  server: Server,
  session: SessionSummary,
  title: string,
  except: Place | null,
): Promise<Place | undefined> {
  const { sessionId } = session;
  const { turns, markers } = await turnsOf(server, session);
  const items = [
    { ...item("clock", "As It Is Now"), place: placeNow(sessionId, "now") },
    ...markers
      .filter((marker) => marker.sessionId === sessionId)
      .reverse()
      .map((marker) => ({ ...markerItem(marker, session), place: placeOfMarker(marker) })),
    ...turnChoices(turns, [], Date.now()).map(({ turn, label, description }) => ({
      ...item("comment", label, description),
      place: placeOfTurn(sessionId, turn),
    })),
  ];
  const isOther = ({ place }: { readonly place: Place }) =>
    place.sessionId !== except?.sessionId || place.turnId !== except.turnId;
  const options = { title: titleFor(title, session), matchOnDescription: true };
  return (await vscode.window.showQuickPick(items.filter(isOther), options))?.place;
}

export async function askBranch(
  session: SessionSummary,
  branches: readonly Branch[],
): Promise<Branch | undefined> {
  if (branches.length < 2) {
    return branches[0];
  }
  const items = [...branches].reverse().map((branch) => ({ ...branchItem(branch), branch }));
  const options = { title: titleFor("Go to Branch", session), matchOnDescription: true };
  return (await vscode.window.showQuickPick(items, options))?.branch;
}

export function titleFor(question: string, session: SessionSummary): string {
  return `${question}: ${cut(subject(session), 60)}`;
}

/** Return a turn by its id; undefined if it no longer counts. */
export async function turnOf(
  server: Server,
  session: SessionSummary,
  turnId: string,
): Promise<ChosenTurn | undefined> {
  const { turns, markers } = await turnsOf(server, session);
  const turn = turns.find((each) => each.turnId === turnId);
  return turn && { turn, markers };
}

async function turnsOf(server: Server, { sessionId }: SessionSummary) {
  const [{ turns }, { items: markers }] = await Promise.all([
    server.request("session", { sessionId }),
    server.request("marks", { sessionId }),
  ]);
  return { turns, markers };
}

function rowOf(choice: TurnChoice, markers: readonly Marker[]): vscode.QuickPickItem {
  const { turn, label, description, detail } = choice;
  const isMarked = markers.some(({ turnNumber }) => turnNumber === turn.number);
  return item(isMarked ? "bookmark" : "comment", label, description, detail);
}

function markerItem(marker: Marker, session: SessionSummary): vscode.QuickPickItem {
  const since = age(marker.createdAt, Date.now());
  const label = iconless(cut(labelOf(marker), 100));
  return item("bookmark", label, dotted(markerState(marker, session), since));
}

function branchItem(branch: Branch): vscode.QuickPickItem {
  const label = iconless(cut(titleOf(branch.title, branch.sessionId), 100));
  const since = age(branch.at, Date.now());
  return item("git-branch", label, dotted(branch.archived ? "archived" : "", since));
}

function item(icon: string, label: string, description = "", detail = ""): vscode.QuickPickItem {
  const iconPath = new vscode.ThemeIcon(icon);
  return { label, description, iconPath, ...(detail === "" ? {} : { detail }) };
}

/** Return the workspace folder for a new session; ask if there are several or none. */
export async function askFolder(): Promise<string | undefined> {
  const paths = await workspacePaths();
  const title = "Which folder is the session for?";
  if (paths.length > 1) {
    return vscode.window.showQuickPick([...paths], { title });
  }
  if (paths[0] !== undefined) {
    return paths[0];
  }
  const options = { title, canSelectFiles: false, canSelectFolders: true };
  return (await vscode.window.showOpenDialog(options))?.[0]?.fsPath;
}
