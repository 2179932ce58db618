/** Compacts a session for a person: shows what it would do, does what was chosen, offers the way on. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Documents } from "./documents.ts";
import { longWork } from "./longWork.ts";
import { figures, notice, reportText } from "./model/compaction.ts";
import { openCodex } from "./openCodex.ts";
import {
  type Compacted,
  CompactPreviewRequest,
  CompactRequest,
  type SessionSummary,
  UncompactRequest,
} from "./protocol.ts";
import { telling } from "./telling.ts";

/** Where the work is to go on, and who says what of it stays. */
interface Target extends vscode.QuickPickItem {
  readonly into: string;
  readonly strategy: string;
}

export class CompactionDesk {
  readonly #server: Server;
  readonly #documents: Documents;

  constructor(server: Server, documents: Documents) {
    this.#server = server;
    this.#documents = documents;
  }

  /** Show both histories side by side, ask where to, and do it. */
  async compact(session: SessionSummary): Promise<void> {
    await telling(async () => {
      const { sessionId } = session;
      const asked = { sessionId, placement: "manual", force: false };
      const would = await longWork(
        this.#server,
        "Looking at what a compaction would do",
        ({ workDoneToken, cancelled }) => {
          const wish = { ...asked, into: "new", strategy: "checkpoint", workDoneToken };
          return this.#server.request(CompactPreviewRequest, wish, cancelled);
        },
      );
      if (would === undefined) {
        return;
      }
      await this.#documents.compareHistories(session);
      const target = await askTarget(figures(would));
      if (target === undefined) {
        return;
      }
      const { into, strategy } = target;
      const title = strategy === "codex" ? "Codex writes its summary" : "Compacting";
      const done = await longWork(this.#server, title, ({ workDoneToken, cancelled }) =>
        this.#server.request(
          CompactRequest,
          { ...asked, into, strategy, workDoneToken },
          cancelled,
        ),
      );
      if (done !== undefined) {
        void this.tell(session, done);
      }
    });
  }

  /** Say quietly what was done, with the ways on from there. */
  async tell(session: SessionSummary, done: Compacted): Promise<void> {
    const [resume, report, undo] = ["Resume in Terminal", "Open Report", "Undo"];
    const sentence = notice(done);
    await telling(async () => {
      const chosen = await vscode.window.showInformationMessage(sentence, resume, report, undo);
      if (chosen === resume && done.sessionId !== null) {
        await openCodex(done.sessionId, session.cwd);
      } else if (chosen === report) {
        await this.#documents.openText("Compaction report", reportText(done));
      } else if (chosen === undo && done.compactionId !== null) {
        await this.undo(done.compactionId);
      }
    });
  }

  /** Take a compaction back. */
  async undo(compactionId: string): Promise<void> {
    await telling(async () => {
      const { into } = await this.#server.request(UncompactRequest, { compactionId });
      const sentence =
        into === "new"
          ? "The compaction is taken back: go on in the session that it was made from."
          : "The compaction is taken back: the session has its history again.";
      vscode.window.setStatusBarMessage(sentence, 8000);
    });
  }
}

async function askTarget(title: string): Promise<Target | undefined> {
  const own: vscode.QuickPickItem = {
    label: "With a summary that Codex asks its model for",
    kind: vscode.QuickPickItemKind.Separator,
  };
  const summary = "Takes a model call, in a fork that is put away afterwards.";
  const items: (Target | vscode.QuickPickItem)[] = [
    {
      label: "Into a New Session",
      detail: "This session stays as it is; the new one goes on from its checkpoint.",
      into: "new",
      strategy: "checkpoint",
    },
    {
      label: "In Place",
      detail: "Appended to this session, while Codex does not have it open.",
      into: "in-place",
      strategy: "checkpoint",
    },
    own,
    {
      label: "Into a New Session, Summarised by Codex",
      detail: summary,
      into: "new",
      strategy: "codex",
    },
    {
      label: "In Place, Summarised by Codex",
      detail: summary,
      into: "in-place",
      strategy: "codex",
    },
  ];
  const placeHolder = "Left: what the model sees now. Right: what it would see.";
  const chosen = await vscode.window.showQuickPick(items, {
    title,
    placeHolder,
    ignoreFocusOut: true,
  });
  return chosen !== undefined && "into" in chosen ? chosen : undefined;
}
