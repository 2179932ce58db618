/** Exports a session to a pack file, and imports a pack after a preview. */

import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import type { SessionSummary } from "../client/protocol.ts";
import { attempt, longRequest } from "../client/requests.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { inform } from "../common/messages.ts";
import { harmless } from "../common/model/text.ts";
import { askFolder } from "../common/pickers.ts";
import { openCodex } from "../common/terminal.ts";
import { packName } from "./model/texts.ts";

const FILTERS = { "Checkpoint packs": ["json"] };

export function packCommands(app: App): Commands {
  return {
    exportSession: onSession(app, (session) => exportPack(app, session)),
    importSession: () => attempt(() => importPack(app)),
  };
}

async function exportPack({ server }: App, session: SessionSummary): Promise<void> {
  const name = packName(session);
  const target = await vscode.window.showSaveDialog({
    title: "Export What This Session Knows",
    filters: FILTERS,
    // Not in the session's folder: a pack does not belong in a repository.
    defaultUri: vscode.Uri.file(join(homedir(), name)),
  });
  if (target === undefined) {
    return;
  }
  // The dialog already asked whether to replace the file.
  const asked = { sessionId: session.sessionId, file: target.fsPath, force: true, dryRun: false };
  const done = await longRequest(server, "Exporting", "export", asked);
  if (done !== undefined) {
    const left = done.leftBehind.map(({ message }) => `${message}.`);
    await inform(harmless([done.headline, ...left].join(" ")));
  }
}

/** Ask for a pack and a folder, show the preview, and create a session. */
async function importPack({ server, reports }: App): Promise<void> {
  const title = "Import a Checkpoint Pack";
  const [pack] = (await vscode.window.showOpenDialog({ title, filters: FILTERS })) ?? [];
  const cwd = pack && (await askFolder());
  if (pack === undefined || cwd === undefined) {
    return;
  }
  if (!(await reports.ask("import", { name: pack.fsPath, folder: cwd }))) {
    return;
  }
  const asked = { file: pack.fsPath, cwd, dryRun: false };
  const done = await longRequest(server, "Importing", "import", asked);
  if (done !== undefined) {
    await inform(harmless(done.headline), {
      "Resume in Terminal": () => done.sessionId && openCodex(done.sessionId, done.cwd),
    });
  }
}
