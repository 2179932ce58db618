/** Shows and copies the digest of a session, and tells once that Codex gets one. */

import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import type { Server } from "./client.ts";
import { hasRunBefore } from "./launch.ts";
import { NO_DIGEST, UpgradeNotice } from "./model/digest.ts";
import { tokenCount } from "./model/text.ts";
import { DigestRequest, DoctorRequest, type SessionSummary } from "./protocol.ts";
import { showDone } from "./requests.ts";

export function digestCommands(app: App): Commands {
  return {
    openDigest: onSession(app, (session) => app.documents.open("digest", session)),
    copyDigest: onSession(app, (session) => copy(app, session)),
  };
}

async function copy({ server }: App, { sessionId }: SessionSummary): Promise<void> {
  const asked = { sessionId, turnId: null, tokens: null };
  const { text, tokens } = await server.request(DigestRequest, asked);
  if (text === "") {
    await vscode.window.showInformationMessage(NO_DIGEST);
    return;
  }
  await vscode.env.clipboard.writeText(text);
  showDone(`The digest is copied: ${tokenCount(tokens)}`);
}

/** What tells after an upgrade that Codex gets digests now; made before the server starts. */
export function digestNotice(server: Server, memory: vscode.Memento): () => Promise<void> {
  const notice = new UpgradeNotice(memory, hasRunBefore(memory));
  const hasHome = async () => {
    const { findings } = await server.request(DoctorRequest, {});
    return !findings.some(({ code }) => code === "codex_home_missing");
  };
  return async () => {
    try {
      if (await notice.isDue(hasHome)) {
        await show();
      }
    } catch (error) {
      // It comes with the next start.
      server.log.info(`digest: ${error instanceof Error ? error.message : error}`);
    }
  };
}

async function show(): Promise<void> {
  const open = "Open Setting";
  const chosen = await vscode.window.showInformationMessage(
    "After a compaction, and when a compacted session is resumed, Codex now gets a digest as well: quoted lines of what was asked, answered, changed and run. It takes at most 8,000 tokens in a compaction, 4,000 from a hook, and never more than a sixteenth of the context window. A setting limits it or switches it off.",
    open,
  );
  if (chosen === open) {
    const setting = "codexCheckpoints.digestTokens";
    await vscode.commands.executeCommand("workbench.action.openSettings", setting);
  }
}
