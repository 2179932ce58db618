/** Pickers for turns, markers, states and branches. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { inform, runCommand } from "./messages.ts";
import { titleOf } from "./model/branches.ts";
import {
  labelOf,
  labelProblem,
  offered,
  type Place,
  placeNow,
  placeOfMarker,
  placeOfTurn,
  standingOf,
  type TurnChoice,
  turnChoices,
} from "./model/markers.ts";
import { age, cut, dotted, iconless, subject } from "./model/text.ts";
import type { Branch, Marker, SessionSummary } from "./protocol.ts";

export interface ChosenTurn {
  readonly choice: TurnChoice;
  readonly markers: readonly Marker[];
}

/** Ask for a turn, with the last complete one preselected; `toMark` refuses incomplete ones. */
export async function askTurn(
  server: Server,
  session: SessionSummary,
  title: string,
  purpose: "toMark" | "toSee",
): Promise<ChosenTurn | undefined> {
  const { turns, markers } = await turnsOf(server, session);
  const choices = turnChoices(turns, markers, Date.now());
  if (choices.length === 0) {
    await inform("This session has no turn yet.");
    return undefined;
  }
  const items = choices.map((choice) => ({ ...rowOf(choice, markers), choice }));
  const first = items.find(({ choice }) => choice === offered(choices)) ?? items[0];
  const chosen = await pick(items, first, {
    title: titleFor(title, session),
    placeholder: "Which turn? The newest is at the top.",
    refuses: ({ choice }) => (purpose === "toMark" ? choice.refusal : null),
  });
  return chosen === undefined ? undefined : { choice: chosen.choice, markers };
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

/** Ask for a state: now, at a marker, at the end of a turn, or another branch as it is now. */
export async function askPlace(
  server: Server,
  session: SessionSummary,
  title: string,
  except: Place | null,
): Promise<Place | undefined> {
  const { sessionId } = session;
  const [{ turns, markers }, { source, items: branches }] = await Promise.all([
    turnsOf(server, session),
    server.request("branches", { sessionId }),
  ]);
  const others = [...(source === null ? [] : [source]), ...branches].filter(
    (each) => each.available,
  );
  const items = [
    { ...item("clock", "As It Is Now"), place: placeNow(sessionId, "now") },
    ...[...markers].reverse().map((marker) => ({
      ...markerItem(marker, session),
      place: placeOfMarker(marker),
    })),
    ...turnChoices(turns, [], Date.now()).map(({ turn, label, description }) => ({
      ...item("comment", label, description),
      place: placeOfTurn(sessionId, turn),
    })),
    ...others.map((branch) => ({
      ...branchItem(branch, branch === source),
      place: placeNow(branch.sessionId, cut(titleOf(branch.title, branch.sessionId), 30)),
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
  const items = [...branches].reverse().map((branch) => ({ ...branchItem(branch, false), branch }));
  const options = { title: titleFor("Go to Branch", session), matchOnDescription: true };
  return (await vscode.window.showQuickPick(items, options))?.branch;
}

export function titleFor(question: string, session: SessionSummary): string {
  return `${question}: ${cut(subject(session), 60)}`;
}

/** A turn by its id; undefined where it no longer counts. */
export async function turnOf(
  server: Server,
  session: SessionSummary,
  turnId: string,
): Promise<ChosenTurn | undefined> {
  const { turns, markers } = await turnsOf(server, session);
  const choice = turnChoices(turns, markers, Date.now()).find(({ turn }) => turn.turnId === turnId);
  return choice === undefined ? undefined : { choice, markers };
}

async function turnsOf(server: Server, { sessionId }: SessionSummary) {
  const [{ turns }, { items: markers }] = await Promise.all([
    server.request("session", { sessionId }),
    server.request("marks", { sessionId }),
  ]);
  return { turns, markers };
}

function rowOf(choice: TurnChoice, markers: readonly Marker[]): vscode.QuickPickItem {
  const { turn, label, description, detail, refusal } = choice;
  const isMarked = markers.some(({ turnNumber }) => turnNumber === turn.number);
  const icon = refusal === null ? (isMarked ? "bookmark" : "comment") : "circle-slash";
  return item(icon, label, description, detail);
}

function markerItem(marker: Marker, session: SessionSummary): vscode.QuickPickItem {
  const since = age(marker.createdAt, Date.now());
  const label = iconless(cut(labelOf(marker), 100));
  return item("bookmark", label, dotted(standingOf(marker, session), since));
}

function branchItem(branch: Branch, isSource: boolean): vscode.QuickPickItem {
  const label = iconless(cut(titleOf(branch.title, branch.sessionId), 100));
  const since = age(branch.at, Date.now());
  const name = isSource ? "source" : "branch";
  const standing = branch.archived ? "archived" : "";
  return item(isSource ? "arrow-up" : "git-branch", label, dotted(name, standing, since));
}

function item(icon: string, label: string, description = "", detail = ""): vscode.QuickPickItem {
  const iconPath = new vscode.ThemeIcon(icon);
  return { label, description, iconPath, ...(detail === "" ? {} : { detail }) };
}

interface Asked<T> {
  readonly title: string;
  readonly placeholder: string;
  /** Why an item cannot be chosen; null if it can. */
  readonly refuses: (item: T) => string | null;
}

/** A picker with one item preselected; a refused item stays, with its reason. */
export function pick<T extends vscode.QuickPickItem>(
  items: readonly T[],
  first: T | undefined,
  { title, placeholder, refuses }: Asked<T>,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const picker = vscode.window.createQuickPick<T>();
    const looks = { matchOnDescription: true, matchOnDetail: true, ignoreFocusOut: true };
    Object.assign(picker, { title, placeholder, items, ...looks });
    picker.activeItems = first === undefined ? [] : [first];
    picker.onDidAccept(() => {
      const [chosen] = picker.activeItems;
      const reason = chosen === undefined ? null : refuses(chosen);
      if (reason === null) {
        resolve(chosen);
        picker.hide();
      } else {
        // A screen reader reads the placeholder.
        picker.value = "";
        picker.placeholder = `${chosen?.label}: ${reason}`;
      }
    });
    showUntilHidden(picker, resolve);
  });
}

/** Show a picker; one that was hidden without a choice has none. */
export function showUntilHidden<T extends vscode.QuickPickItem>(
  picker: vscode.QuickPick<T>,
  resolve: (chosen: undefined) => void,
): void {
  picker.onDidHide(() => {
    resolve(undefined);
    picker.dispose();
  });
  picker.show();
}
