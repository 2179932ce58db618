/** Shows and copies the digest of a session, and tells once that Codex gets one. */

import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import type { Server } from "./client.ts";
import { hasRunBefore } from "./launch.ts";
import { inform, runCommand, showDone } from "./messages.ts";
import { NO_DIGEST, suspectText, UpgradeNotice } from "./model/digest.ts";
import { tokenCount } from "./model/text.ts";
import type { DoctorReport, SessionSummary } from "./protocol.ts";
import { openSettings } from "./settings.ts";

export function digestCommands(app: App): Commands {
  return {
    openDigest: onSession(app, (session) => app.documents.open("digest", session)),
    copyDigest: onSession(app, (session) => copy(app, session)),
  };
}

async function copy({ server }: App, { sessionId }: SessionSummary): Promise<void> {
  const asked = { sessionId, turnId: null, tokens: null };
  const { text, tokens } = await server.request("digest", asked);
  if (text === "") {
    await inform(NO_DIGEST);
    return;
  }
  await vscode.env.clipboard.writeText(text);
  showDone(`The digest is copied: ${tokenCount(tokens)}`);
}

/** What tells after an upgrade of new digests and new rules; made before the server starts. */
export function upgradeNotices(server: Server, memory: vscode.Memento): () => Promise<void> {
  const hasRun = hasRunBefore(memory);
  const digests = new UpgradeNotice(memory, hasRun, "digestNoticed");
  const facts = new UpgradeNotice(memory, hasRun, "suspectNoticed");
  return async () => {
    try {
      let asked: Promise<DoctorReport> | undefined;
      const diagnosis = () => (asked ??= server.request("doctor", {}));
      const has = async (code: string) =>
        (await diagnosis()).findings.find((each) => each.code === code);
      const hasHome = async () => (await has("codex_home_missing")) === undefined;
      const [ofDigests, ofFacts] = [await digests.isDue(hasHome), await facts.isDue(hasHome)];
      const turned = ofFacts ? await has("suspect_by_new_rules") : undefined;
      await Promise.all([ofDigests && show(), turned && showSuspect(turned.count)]);
    } catch (error) {
      // It comes with the next start.
      server.log.info(`upgrade: ${error instanceof Error ? error.message : error}`);
    }
  };
}

function showSuspect(count: number): Promise<void> {
  return inform(suspectText(count), { "Open Doctor Report": () => runCommand("doctor") });
}

function show(): Promise<void> {
  return inform(
    "After a compaction, and when a compacted session is resumed, Codex now gets a digest as well: quoted lines of what was asked, answered, changed and run. It takes at most 8,000 tokens in a compaction, 4,000 from a hook, and never more than a sixteenth of the context window. A setting limits it or switches it off.",
    { "Open Setting": () => openSettings("@id:codexCheckpoints.digestTokens") },
  );
}
