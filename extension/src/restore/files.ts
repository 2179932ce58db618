/** Restores a session's files to the end of a turn. */

import { join } from "node:path";
import * as vscode from "vscode";
import type {
  FilesParams,
  Marker,
  RestoredFile,
  RestoredFiles,
  SessionSummary,
} from "../client/protocol.ts";
import { attempt, showUndoable } from "../client/requests.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { inform, warn } from "../common/messages.ts";
import { RESTRICTED } from "../common/model/controls.ts";
import { counted, dotted, harmless, plain } from "../common/model/text.ts";
import { askTurn, titleFor } from "../common/pickers.ts";
import { rowWords } from "./model/files.ts";

/** A turn, or a marker on one; files are restored to its end. */
export type FilesPlace = Pick<FilesParams, "sessionId" | "turnId" | "checkpointId">;

export function fileRestoreCommands(app: App): Commands {
  return {
    restoreFiles: onSession(app, (session, marker) => restoreFiles(app, session, marker)),
  };
}

async function restoreFiles(
  app: App,
  session: SessionSummary,
  marker: Marker | null,
): Promise<void> {
  if (await isRestricted()) {
    return;
  }
  const { sessionId } = session;
  const turn =
    marker === null ? await askTurn(app.server, session, "Restore Files", "toMark") : null;
  if (turn === undefined) {
    return;
  }
  await restoreFilesTo(app, session, {
    sessionId,
    turnId: turn?.turn.turnId ?? null,
    checkpointId: marker?.checkpointId ?? null,
  });
}

/** Ask which files to restore to the end of a turn, and restore them. */
export async function restoreFilesTo(
  app: App,
  session: SessionSummary,
  place: FilesPlace,
): Promise<void> {
  if (await isRestricted()) {
    return;
  }
  const plan = await planOf(app, place);
  const words = harmless(`${plan.headline} ${plan.remark ?? ""}`);
  const offered = plan.rows.filter((row) => row.offered);
  if (offered.length === 0) {
    await inform(words);
    return;
  }
  const title = titleFor("Restore Files", session);
  const ticked = offered.filter(({ on }) => on);
  const chosen = await choose(app, place, [title, `Which files? ${words}`], offered, ticked);
  await restoreChosen(app, place, plan, chosen ?? []);
}

/** Show a file's diff, and restore the file if the user agrees. */
export async function restoreOne(app: App, place: FilesPlace, path: string): Promise<void> {
  const plan = await planOf(app, place);
  const row = plan.rows.find((each) => each.path === path);
  if (!row?.offered) {
    const { label = "not changed by the session after that turn", why = null } = row ?? {};
    await inform(harmless(`Left as it is: ${path} (${why ?? label}).`));
    return;
  }
  await showDifference(app, place, path);
  // A notification leaves the diff visible; a modal question would cover it.
  const { description, detail = "" } = rowWords(row);
  await inform(harmless(`Restore ${path}? ${dotted(description, detail)}`), {
    Restore: () => attempt(() => restoreChosen(app, place, plan, [row])),
  });
}

/** Restore the chosen rows of a plan, and report it with an undo button. */
async function restoreChosen(
  app: App,
  place: FilesPlace,
  { folder }: RestoredFiles,
  chosen: readonly RestoredFile[],
): Promise<void> {
  const ready = await withoutUnsaved(folder, chosen);
  if (ready === undefined || ready.length === 0) {
    return;
  }
  const { operationId, headline } = await writeFiles(app, place, ready);
  operationId === null
    ? void warn(harmless(headline))
    : showUndoable(headline, async () => {
        await inform(harmless((await undoFiles(app, operationId)).headline));
      });
}

/** Check whether the window is untrusted, and tell the user that no file is written then. */
export async function isRestricted(): Promise<boolean> {
  if (vscode.workspace.isTrusted) {
    return false;
  }
  await inform(RESTRICTED, {
    "Manage Workspace Trust": () => vscode.commands.executeCommand("workbench.trust.manage"),
  });
  return true;
}

/** Request the plan of a restore; with a path, it includes the texts of that file. */
export function planOf(
  { server }: Pick<App, "server">,
  place: FilesPlace,
  path: string | null = null,
  token?: vscode.CancellationToken,
): Promise<RestoredFiles> {
  const one = { files: path === null ? null : [path], merge: [], texts: path !== null };
  return server.request("restoreFilesPreview", { ...place, ...one }, token);
}

/** Write the chosen rows of a plan. */
export function writeFiles(
  { server }: Pick<App, "server">,
  place: FilesPlace,
  chosen: readonly RestoredFile[],
): Promise<RestoredFiles> {
  const named = (isMerged: boolean) =>
    chosen.filter(({ state }) => (state === "merge") === isMerged).map(({ path }) => path);
  const asked = { ...place, files: named(false), merge: named(true), texts: false };
  return server.request("restoreFiles", asked);
}

export function undoFiles(
  { server }: Pick<App, "server">,
  operationId: string,
): Promise<RestoredFiles> {
  return server.request("undoRestoreFiles", { operationId });
}

/** Show a file's diff; false if the session lacks one of the texts. */
export async function showDifference(
  app: Pick<App, "server" | "documents">,
  place: FilesPlace,
  path: string,
): Promise<boolean> {
  const { rows } = await planOf(app, place, path);
  const row = rows.find((each) => each.path === path);
  const { before = null, after = null } = row ?? {};
  if (before === null && after === null) {
    return false;
  }
  const [now, then] = [
    app.documents.part(`now/${path}`, before ?? ""),
    app.documents.part(`then/${path}`, after ?? ""),
  ];
  const title = `${plain(path)}: now ↔ then`;
  const looks = { preview: true, preserveFocus: true };
  await vscode.commands.executeCommand("vscode.diff", now, then, title, looks);
  return true;
}

interface Row extends vscode.QuickPickItem {
  readonly file: RestoredFile;
}

/** Ask which files to restore; a button in each row shows the diff. */
async function choose(
  app: App,
  place: FilesPlace,
  [title, placeholder]: readonly [title: string, placeholder: string],
  offered: readonly RestoredFile[],
  ticked: readonly RestoredFile[],
): Promise<readonly RestoredFile[] | undefined> {
  const button = { iconPath: new vscode.ThemeIcon("diff"), tooltip: "Show the Difference" };
  const picker = vscode.window.createQuickPick<Row>();
  picker.title = title;
  picker.placeholder = placeholder;
  picker.canSelectMany = true;
  picker.ignoreFocusOut = true;
  picker.items = offered.map((file) => ({ ...rowWords(file), file, buttons: [button] }));
  picker.selectedItems = picker.items.filter(({ file }) => ticked.includes(file));
  picker.onDidTriggerItemButton(({ item: { file } }) =>
    attempt(async () => void (await showDifference(app, place, file.path))),
  );
  const chosen = new Promise<readonly RestoredFile[] | undefined>((answer) => {
    picker.onDidAccept(() => answer(picker.selectedItems.map(({ file }) => file)));
    picker.onDidHide(() => answer(undefined));
  });
  picker.show();
  try {
    return await chosen;
  } finally {
    picker.dispose();
  }
}

/** Ask about chosen files with unsaved changes: save them or leave them out. */
export async function withoutUnsaved(
  folder: string,
  chosen: readonly RestoredFile[],
): Promise<readonly RestoredFile[] | undefined> {
  const open = vscode.workspace.textDocuments.filter(({ isDirty }) => isDirty);
  const documentsOf = ({ path, movedTo }: RestoredFile) => {
    const places = [path, ...(movedTo === null ? [] : [movedTo])].map((each) => join(folder, each));
    return open.filter(({ uri }) => uri.scheme === "file" && places.includes(uri.fsPath));
  };
  const unsaved = chosen.filter((file) => documentsOf(file).length > 0);
  if (unsaved.length === 0) {
    return chosen;
  }
  const question = `${counted(unsaved.length, "1 chosen file has", `${unsaved.length} chosen files have`)} unsaved changes.`;
  const detail = unsaved.map(({ path }) => plain(path)).join("\n");
  const answer = await vscode.window.showWarningMessage(
    question,
    { modal: true, detail },
    "Leave Out",
    "Save",
  );
  if (answer === "Leave Out") {
    return chosen.filter((file) => !unsaved.includes(file));
  }
  if (answer === "Save") {
    await Promise.all(unsaved.flatMap(documentsOf).map((document) => document.save()));
    return chosen;
  }
  return undefined;
}
