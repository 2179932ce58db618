/** Carries what a session knows to another machine, and takes it in there, after a look at it. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Documents } from "./documents.ts";
import { longWork } from "./longWork.ts";
import { countWords, importText, packName } from "./model/portable.ts";
import { harmless } from "./model/text.ts";
import { openCodex } from "./openCodex.ts";
import {
  ExportRequest,
  type Imported,
  type ImportParams,
  ImportRequest,
  type SessionSummary,
} from "./protocol.ts";
import { telling } from "./telling.ts";
import { workspacePaths } from "./workspace.ts";

export class PackDesk {
  readonly #server: Server;
  readonly #documents: Documents;

  constructor(server: Server, documents: Documents) {
    this.#server = server;
    this.#documents = documents;
  }

  /** Ask where to, and write the pack. */
  async export(session: SessionSummary): Promise<void> {
    const [folder] = await workspacePaths();
    const name = packName(session);
    const target = await vscode.window.showSaveDialog({
      title: "Export What This Session Knows",
      filters: { "Checkpoint packs": ["json"] },
      ...(folder === undefined
        ? {}
        : { defaultUri: vscode.Uri.joinPath(vscode.Uri.file(folder), name) }),
    });
    if (target === undefined) {
      return;
    }
    await telling(async () => {
      // The dialog has asked already whether to replace a file.
      const wish = { file: target.fsPath, force: true, dryRun: false };
      const { sessionId } = session;
      const done = await longWork(this.#server, "Exporting", ({ workDoneToken, cancelled }) =>
        this.#server.request(ExportRequest, { sessionId, ...wish, workDoneToken }, cancelled),
      );
      if (done === undefined) {
        return;
      }
      const words = countWords(done.counts);
      const sentence = `Exported: ${words}. Nothing of the conversation is in it.`;
      const left = done.leftBehind.map(({ message }) => harmless(message));
      const told = [sentence, ...left].join(" ");
      await vscode.window.showInformationMessage(told);
    });
  }

  /** Ask for a pack and a folder, show what a model will be told, and make a session of it. */
  async import(): Promise<void> {
    const [pack] =
      (await vscode.window.showOpenDialog({
        title: "Import a Checkpoint Pack",
        filters: { "Checkpoint packs": ["json"] },
      })) ?? [];
    const cwd = pack === undefined ? undefined : await askFolder();
    if (pack === undefined || cwd === undefined) {
      return;
    }
    await telling(async () => {
      const wish = { file: pack.fsPath, cwd };
      const would = await this.#asked("Reading the pack", { ...wish, dryRun: true });
      if (would === undefined) {
        return;
      }
      await this.#documents.openText("Import", importText(would));
      const yes = "Import";
      const detail = `It was made elsewhere: the document shows all that a model will be told. It becomes a new session for ${cwd}.`;
      const question = "Make a session of this pack?";
      const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, yes);
      if (answer !== yes) {
        return;
      }
      const done = await this.#asked("Importing", { ...wish, dryRun: false });
      if (done === undefined) {
        return;
      }
      const resume = "Resume in Terminal";
      const sentence = `Imported: ${countWords(done.counts)}.`;
      const chosen = await vscode.window.showInformationMessage(sentence, resume);
      if (chosen === resume && done.sessionId !== null) {
        await openCodex(done.sessionId, done.cwd);
      }
    });
  }

  /** Ask what comes of a pack, or have it done; undefined when a person called it off. */
  #asked(title: string, wish: Omit<ImportParams, "workDoneToken">): Promise<Imported | undefined> {
    return longWork(this.#server, title, ({ workDoneToken, cancelled }) =>
      this.#server.request(ImportRequest, { ...wish, workDoneToken }, cancelled),
    );
  }
}

/** The folder of this window, one of several, or one that is chosen. */
async function askFolder(): Promise<string | undefined> {
  const paths = await workspacePaths();
  if (paths.length > 1) {
    const title = "For which folder is the session?";
    return vscode.window.showQuickPick([...paths], { title });
  }
  if (paths[0] !== undefined) {
    return paths[0];
  }
  const [folder] =
    (await vscode.window.showOpenDialog({
      title: "For which folder is the session?",
      canSelectFiles: false,
      canSelectFolders: true,
    })) ?? [];
  return folder?.fsPath;
}
