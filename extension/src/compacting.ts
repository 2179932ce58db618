/** Compacts a session for a person: shows what it would do, does what was chosen, offers the way on. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Documents } from "./documents.ts";
import { figures, notice, reportText } from "./model/compaction.ts";
import { harmless } from "./model/text.ts";
import {
  type Compacted,
  CompactPreviewRequest,
  CompactRequest,
  type SessionSummary,
  UncompactRequest,
} from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";
import { resumeInTerminal } from "./resuming.ts";

const { l10n } = vscode;

export class CompactionDesk {
  readonly #server: Server;
  readonly #documents: Documents;

  constructor(server: Server, documents: Documents) {
    this.#server = server;
    this.#documents = documents;
  }

  /** Show both histories side by side, ask where to, and do it. */
  async compact(session: SessionSummary): Promise<void> {
    await this.#saying(async () => {
      const { sessionId } = session;
      const asked = { sessionId, strategy: "checkpoint", placement: "manual", force: false };
      const would = await this.#server.request(CompactPreviewRequest, { ...asked, into: "new" });
      await this.#documents.compareHistories(session);
      const into = await askTarget(figures(would, l10n.t));
      if (into === undefined) {
        return;
      }
      const done = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: l10n.t("Compacting") },
        () => this.#server.request(CompactRequest, { ...asked, into }),
      );
      void this.#offer(session, done);
    });
  }

  async #offer(session: SessionSummary, done: Compacted): Promise<void> {
    const [resume, report, undo] = [
      l10n.t("Resume in Terminal"),
      l10n.t("Open Report"),
      l10n.t("Undo"),
    ];
    const sentence = notice(done, l10n.t);
    const chosen = await vscode.window.showInformationMessage(sentence, resume, report, undo);
    if (chosen === resume && done.sessionId !== null) {
      await resumeInTerminal(done.sessionId, session.cwd);
    } else if (chosen === report) {
      await this.#documents.openText(l10n.t("Compaction report"), reportText(done, l10n.t));
    } else if (chosen === undo && done.compactionId !== null) {
      const { compactionId } = done;
      await this.#saying(async () => {
        await this.#server.request(UncompactRequest, { compactionId });
        vscode.window.setStatusBarMessage(l10n.t("The compaction is taken back"), 5000);
      });
    }
  }

  async #saying(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      void vscode.window.showWarningMessage(harmless(saysRefusal(error, l10n.t)));
    }
  }
}

async function askTarget(title: string): Promise<string | undefined> {
  const items = [
    {
      label: l10n.t("Into a New Session"),
      detail: l10n.t("This session stays as it is; the new one goes on from its checkpoint."),
      into: "new",
    },
    {
      label: l10n.t("In Place"),
      detail: l10n.t("Appended to this session, while Codex does not have it open."),
      into: "in-place",
    },
  ];
  const placeHolder = l10n.t("Left: what the model sees now. Right: what it would see.");
  const chosen = await vscode.window.showQuickPick(items, {
    title,
    placeHolder,
    ignoreFocusOut: true,
  });
  return chosen?.into;
}
