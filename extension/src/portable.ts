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

const { l10n } = vscode;

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
    const name = packName(session, l10n.t);
    const target = await vscode.window.showSaveDialog({
      title: l10n.t("Export What This Session Knows"),
      filters: { [l10n.t("Checkpoint packs")]: ["json"] },
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
      const done = await longWork(
        this.#server,
        l10n.t("Exporting"),
        ({ workDoneToken, cancelled }) =>
          this.#server.request(ExportRequest, { sessionId, ...wish, workDoneToken }, cancelled),
      );
      if (done === undefined) {
        return;
      }
      const words = countWords(done.counts, l10n.t);
      const sentence = l10n.t("Exported: {0}. Nothing of the conversation is in it.", words);
      const left = done.leftBehind.map(({ message }) => harmless(message));
      const told = [sentence, ...left].join(" ");
      await vscode.window.showInformationMessage(told);
    });
  }

  /** Ask for a pack and a folder, show what a model will be told, and make a session of it. */
  async import(): Promise<void> {
    const [pack] =
      (await vscode.window.showOpenDialog({
        title: l10n.t("Import a Checkpoint Pack"),
        filters: { [l10n.t("Checkpoint packs")]: ["json"] },
      })) ?? [];
    const cwd = pack === undefined ? undefined : await askFolder();
    if (pack === undefined || cwd === undefined) {
      return;
    }
    await telling(async () => {
      const wish = { file: pack.fsPath, cwd };
      const would = await this.#asked(l10n.t("Reading the pack"), { ...wish, dryRun: true });
      if (would === undefined) {
        return;
      }
      await this.#documents.openText(l10n.t("Import"), importText(would, l10n.t));
      const yes = l10n.t("Import");
      const detail = l10n.t(
        "It was made elsewhere: the document shows all that a model will be told. It becomes a new session for {0}.",
        cwd,
      );
      const question = l10n.t("Make a session of this pack?");
      const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, yes);
      if (answer !== yes) {
        return;
      }
      const done = await this.#asked(l10n.t("Importing"), { ...wish, dryRun: false });
      if (done === undefined) {
        return;
      }
      const resume = l10n.t("Resume in Terminal");
      const sentence = l10n.t("Imported: {0}.", countWords(done.counts, l10n.t));
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
    const title = l10n.t("For which folder is the session?");
    return vscode.window.showQuickPick([...paths], { title });
  }
  if (paths[0] !== undefined) {
    return paths[0];
  }
  const [folder] =
    (await vscode.window.showOpenDialog({
      title: l10n.t("For which folder is the session?"),
      canSelectFiles: false,
      canSelectFolders: true,
    })) ?? [];
  return folder?.fsPath;
}
