/** Warns that Codex edits files outside plan and recent work, if a setting asks for it. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { openArtifact } from "./files.ts";
import { Drift } from "./model/status.ts";
import { iconless } from "./model/text.ts";
import type { Strayed } from "./protocol.ts";
import { attempt } from "./requests.ts";
import { setForAll } from "./settings.ts";

/** One warning for each session at a time, whatever number of files it is about. */
export function warnOfDrift(server: Server): vscode.Disposable {
  const drift = new Drift();
  return server.onDidStray((strayed) => {
    if (drift.add(strayed)) {
      void attempt(() => warn(server, drift, strayed));
    }
  });
}

async function warn(server: Server, drift: Drift, { sessionId }: Strayed): Promise<void> {
  const show = "Show";
  const off = "Turn Off";
  const sentence = "Codex changed a file that neither the plan nor recent work mentions.";
  const chosen = await vscode.window.showWarningMessage(sentence, show, off);
  const files = drift.take(sessionId);
  if (chosen === off) {
    await setForAll("driftGuard", false);
  } else if (chosen === show) {
    const title = "Changed Outside the Plan";
    const rows = files.map((file) => ({ ...file, label: iconless(file.label) }));
    const file = await vscode.window.showQuickPick(rows, { title });
    if (file !== undefined) {
      await openArtifact(await folderOf(server, sessionId), file.uri);
    }
  }
}

async function folderOf(server: Server, sessionId: string): Promise<string | null> {
  try {
    return (await server.request("session", { sessionId })).summary.cwd;
  } catch {
    return null; // the server is gone, or the session: what has a whole path opens all the same
  }
}
