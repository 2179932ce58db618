/** Goes on with a session in a terminal, with the Codex that is installed, after a look at its context. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { CompactionDesk } from "./compacting.ts";
import { longWork } from "./longWork.ts";
import { percentOf } from "./model/offer.ts";
import { refusalText } from "./model/refusal.ts";
import { openCodex } from "./openCodex.ts";
import { type Resumed, ResumeRequest, type SessionSummary } from "./protocol.ts";
import { telling } from "./telling.ts";

/** What a person does about a context that is nearly full. */
type Choice = "resume" | "compact" | "newer";

export class ResumeDesk {
  readonly #server: Server;
  readonly #compaction: CompactionDesk;

  constructor(server: Server, compaction: CompactionDesk) {
    this.#server = server;
    this.#compaction = compaction;
  }

  /** Check between two turns, as the setting says, and go on (JUN-16, JUN-36). */
  async resume(session: SessionSummary): Promise<void> {
    await telling(async () => {
      const found = await longWork(
        this.#server,
        "Looking at how full the context is",
        ({ workDoneToken, cancelled }) =>
          this.#server.request(
            ResumeRequest,
            { sessionId: session.sessionId, workDoneToken },
            cancelled,
          ),
      );
      if (found !== undefined) {
        await this.#goOn(session, found);
      }
    });
  }

  async #goOn(session: SessionSummary, found: Resumed): Promise<void> {
    if (found.live) {
      void vscode.window.showInformationMessage("Codex has this session open already.");
      return;
    }
    if (found.compacted !== null) {
      void this.#compaction.tell(session, found.compacted);
    } else if (found.notCompacted !== null) {
      const { code } = found.notCompacted;
      const why = refusalText(code, {});
      void vscode.window.showInformationMessage(`It was not compacted first. ${why}`);
    }
    switch (await choose(found)) {
      case "resume":
        await openCodex(found.sessionId, found.cwd);
        break;
      case "compact":
        await this.#compaction.compact(session);
        break;
      case "newer":
        await openCodex(found.continuedBy ?? "", found.cwd);
        break;
      default:
    }
  }
}

/** Ask only where there is something to choose. */
async function choose({ offer, continuedBy }: Resumed): Promise<Choice | undefined> {
  const items: (vscode.QuickPickItem & { readonly choice: Choice })[] = [];
  if (continuedBy !== null) {
    const label = "Resume the Session It Goes On In";
    const detail = "This one was compacted into a new session.";
    items.push({ label, detail, choice: "newer" });
  }
  if (offer !== null) {
    const label = "Compact First…";
    const detail = "Go on from the checkpoint instead of the whole history.";
    items.push({ label, detail, choice: "compact" });
  }
  if (items.length === 0) {
    return "resume";
  }
  const resume = { label: "Resume as It Is", choice: "resume" } as const;
  const title =
    offer === null ? "Its work went on elsewhere" : `Its context is ${percentOf(offer)}% full`;
  return (await vscode.window.showQuickPick([...items, resume], { title }))?.choice;
}
