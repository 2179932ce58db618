/** Restores one file of a session: from its rows, its diffs, and a turn's menu. */

import * as vscode from "vscode";
import type { CheckpointNode } from "../checkpoint/model/rows.ts";
import type { SessionSummary } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import { setContext } from "../client/settings.ts";
import type { App, Commands } from "../common/app.ts";
import { isChangedFile } from "../common/documents.ts";
import { inform } from "../common/messages.ts";
import { readShownFile, type ShownFile } from "../common/model/documents.ts";
import { cut, harmless, iconless, plain } from "../common/model/text.ts";
import { titleFor } from "../common/pickers.ts";
import { statesBefore } from "../markers/model/texts.ts";
import { type FilesPlace, isRestricted, planOf, restoreOne } from "./files.ts";
import { rowWords } from "./model/files.ts";

export function oneFileCommands(app: App): Commands {
  return {
    // The target is a row of the checkpoint, or a side of a changed file's diff.
    restoreFile: (target?: vscode.Uri | CheckpointNode) =>
      attempt(async () => {
        const file = target && fileOf(app, target);
        if (file && !(await isRestricted())) {
          await restoreFile(app, file);
        }
      }),
  };
}

/**
 * Set the context key for editor menus that tells whether changed files are shown: in a multi-diff
 * editor, menus do not know their document.
 */
export function followChangedFiles(): vscode.Disposable {
  const tell = (editors: readonly vscode.TextEditor[]) =>
    setContext(
      "changedFiles",
      editors.some(({ document }) => isChangedFile(document.uri)),
    );
  tell(vscode.window.visibleTextEditors);
  return vscode.window.onDidChangeVisibleTextEditors(tell);
}

function fileOf({ following }: App, target: vscode.Uri | CheckpointNode): ShownFile | null {
  if (target instanceof vscode.Uri) {
    return isChangedFile(target) ? readShownFile(target.fragment) : null;
  }
  const { action } = target;
  const sessionId = following.current?.sessionId;
  return action !== null && "uri" in action && sessionId !== undefined
    ? { sessionId, uri: action.uri, turnId: null, afterTurnId: null }
    : null;
}

/** Restore a file to the state before a turn that changed it; ask if there are several. */
async function restoreFile(app: App, file: ShownFile): Promise<void> {
  const { sessionId, uri } = file;
  const turnId = file.afterTurnId ?? (await askState(app, file));
  if (turnId !== undefined) {
    await restoreOne(app, { sessionId, turnId, checkpointId: null }, uri);
  }
}

/** Ask before which turn, and return the turn that ends there. */
async function askState(
  { server }: App,
  { sessionId, uri, turnId }: ShownFile,
): Promise<string | undefined> {
  const asked = { sessionId, uri, turnId, afterTurnId: null, texts: false, bases: {} };
  const [{ files }, { turns }] = await Promise.all([
    server.request("changes", asked),
    server.request("session", { sessionId }),
  ]);
  const states = statesBefore(files[0]?.turns ?? [], turns);
  if (states.length === 0) {
    await inform("There is no turn before the first one that changed this file.");
    return undefined;
  }
  const items = states.map(({ number, task, endOf }) => ({
    label: `Before Turn ${number}`,
    description: iconless(cut(plain(task), 80)),
    endOf,
  }));
  const title = harmless(`Restore ${plain(uri)}`);
  const chosen =
    items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title });
  return chosen?.endOf;
}

/** Ask which file to restore to the end of a turn, and restore it. */
export async function restoreOneOf(
  app: App,
  session: SessionSummary,
  place: FilesPlace,
): Promise<void> {
  if (await isRestricted()) {
    return;
  }
  const { rows, headline } = await planOf(app, place);
  const offered = rows.filter((row) => row.offered);
  if (offered.length === 0) {
    await inform(harmless(headline));
    return;
  }
  const title = titleFor("Restore One File", session);
  const items = offered.map((file) => ({ ...rowWords(file), path: file.path }));
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder: "Which file?" });
  if (chosen !== undefined) {
    await restoreOne(app, place, chosen.path);
  }
}
