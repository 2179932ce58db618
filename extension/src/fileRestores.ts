/** Brings files of a session back to what they were at the end of a turn. */

import { join } from "node:path";
import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import { inform, warn } from "./messages.ts";
import { rowWords } from "./model/fileRestores.ts";
import { counted, harmless, plain } from "./model/text.ts";
import { askTurn, titleFor } from "./picking.ts";
import type { FilesParams, Marker, RestoredFile, SessionSummary } from "./protocol.ts";
import { showUndoable } from "./requests.ts";

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
  const { server } = app;
  const { sessionId } = session;
  const turn = marker === null ? await askTurn(server, session, "Restore Files", "toMark") : null;
  if (turn === undefined) {
    return;
  }
  const place = {
    sessionId,
    turnId: turn?.turn.turnId ?? null,
    checkpointId: marker?.checkpointId ?? null,
  };
  const asked: FilesParams = { ...place, files: null, merge: [], texts: true };
  const plan = await server.request("restoreFilesPreview", asked);
  const words = harmless(`${plan.headline} ${plan.remark ?? ""}`);
  const offered = plan.rows.filter((row) => row.offered);
  if (offered.length === 0) {
    await inform(words);
    return;
  }
  const title = titleFor("Restore Files", session);
  const chosen = await choose(app, title, words, offered);
  const ready = chosen && (await withoutUnsaved(plan.folder, chosen));
  if (!ready || ready.length === 0) {
    return;
  }
  const merge = ready.filter(({ state }) => state === "merge").map(({ path }) => path);
  const files = ready.map(({ path }) => path).filter((path) => !merge.includes(path));
  const wish: FilesParams = { ...place, files, merge, texts: false };
  const { operationId, headline } = await server.request("restoreFiles", wish);
  operationId === null
    ? void warn(harmless(headline))
    : showUndoable(headline, () => undo(app, operationId));
}

async function undo({ server }: App, operationId: string): Promise<void> {
  const { headline } = await server.request("undoRestoreFiles", { operationId });
  await inform(harmless(headline));
}

interface Row extends vscode.QuickPickItem {
  readonly file: RestoredFile;
}

/** Ask which files to restore; a button of each shows its difference. */
async function choose(
  { documents }: App,
  title: string,
  words: string,
  offered: readonly RestoredFile[],
): Promise<readonly RestoredFile[] | undefined> {
  const button = { iconPath: new vscode.ThemeIcon("diff"), tooltip: "Show the Difference" };
  const picker = vscode.window.createQuickPick<Row>();
  picker.title = title;
  picker.placeholder = `Which files? ${words}`;
  picker.canSelectMany = true;
  picker.ignoreFocusOut = true;
  picker.items = offered.map((file) => ({ ...rowWords(file), file, buttons: [button] }));
  picker.selectedItems = picker.items.filter(({ file }) => file.on);
  picker.onDidTriggerItemButton(({ item: { file } }) => {
    const [now, then] = [file.before ?? "", file.after ?? ""].map((text, side) =>
      documents.part(`${side === 0 ? "now" : "then"}/${file.path}`, text),
    );
    const name = `${plain(file.path)}: now ↔ then`;
    void vscode.commands.executeCommand("vscode.diff", now, then, name, { preserveFocus: true });
  });
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

/** Save the chosen files that are open with unsaved changes, or leave them out, as the user says. */
async function withoutUnsaved(
  folder: string,
  chosen: readonly RestoredFile[],
): Promise<readonly RestoredFile[] | undefined> {
  const open = vscode.workspace.textDocuments.filter(({ isDirty }) => isDirty);
  const documentOf = ({ path }: RestoredFile) =>
    open.find(({ uri }) => uri.scheme === "file" && uri.fsPath === join(folder, path));
  const unsaved = chosen.filter((file) => documentOf(file) !== undefined);
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
    await Promise.all(unsaved.map((file) => documentOf(file)?.save()));
    return chosen;
  }
  return undefined;
}
