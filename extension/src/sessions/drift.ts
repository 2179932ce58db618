/** Warns if Codex edits files outside its plan and recent work; a setting turns this on. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { Strayed } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import { setForAll } from "../client/settings.ts";
import { openArtifact } from "../common/files.ts";
import { warn } from "../common/messages.ts";
import { iconless, plain } from "../common/model/text.ts";

/** The editor itself shows identical warnings only once. */
export function warnOfDrift(server: Server): vscode.Disposable {
  const sentence = "Codex changed a file that neither the plan nor recent work mentions.";
  return server.onDidStray((strayed) => {
    const show = () => attempt(() => showFiles(server, strayed));
    void warn(sentence, { Show: show, "Turn Off": () => setForAll("driftGuard", false) });
  });
}

async function showFiles(server: Server, { sessionId, uris }: Strayed): Promise<void> {
  const rows = uris.map((uri) => ({ label: iconless(plain(uri)), uri }));
  const file = await vscode.window.showQuickPick(rows, { title: "Changed Outside the Plan" });
  if (file !== undefined) {
    const { summary } = await server.request("session", { sessionId });
    await openArtifact(summary.cwd, file.uri);
  }
}
