/** The preview of a compaction in a tab, for the budget that the user chooses. */

import * as vscode from "vscode";
import type { Compacted, SessionSummary } from "../client/protocol.ts";
import type { App } from "../common/app.ts";
import { showDone } from "../common/messages.ts";
import { historyText } from "../common/model/documents.ts";
import type { FromPage, ToPage } from "../common/model/pages.ts";
import { cut, subject, tokenCount } from "../common/model/text.ts";
import { AnsweredPage, type Tab, Tabs } from "../common/panel.ts";
import { compact } from "./commands.ts";

/** The compaction previews of this window, one per session. */
export function compactionPreviews(app: App, extension: vscode.Uri) {
  return new Tabs(app, extension, "compaction", ["sessionId"], CompactionPreview);
}

class CompactionPreview extends AnsweredPage {
  protected override readonly canForce = true;
  readonly #sessionId: string;
  /** The chosen budget; null for the default. */
  #budget: number | null = null;
  /** Whether to compact even if the context gets no smaller or the turn is open. */
  #force = false;
  #usual: Compacted | null = null;
  #shown: { readonly session: SessionSummary; readonly would: Compacted } | null = null;
  #isBusy = false;

  constructor(tab: Tab<"sessionId">) {
    super(tab);
    this.#sessionId = tab.ids.sessionId;
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    return changes.has(this.#sessionId);
  }

  protected override look(): Promise<void> {
    this.#usual = null;
    return super.look();
  }

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "budget":
        this.#budget = message.budget;
        return super.look();
      case "record":
        return this.app.reports.openRecord(this.#sessionId, message.ref, vscode.ViewColumn.Beside);
      case "remedy": // "Go On Anyway", the only remedy handled by the page
        this.#force = true;
        return this.look();
      default:
        return this.#act(message.kind);
    }
  }

  /**
   * After a refusal nothing is shown; while the server is down, the preview can still be copied.
   */
  protected override refuse(error: unknown, again: boolean): void {
    this.#shown = again ? null : this.#shown;
    super.refuse(error, again);
  }

  /** Run an action of the page on the preview. */
  async #act(kind: FromPage["kind"]): Promise<void> {
    const shown = this.#shown;
    if (shown === null || this.#isBusy) {
      return;
    }
    const { session, would } = shown;
    if (kind === "diff") {
      await this.app.documents.compareHistories(session, this.#budget);
    } else if (kind === "copy") {
      await vscode.env.clipboard.writeText(historyText(would.replacement));
      showDone(`The replacement is copied: ${tokenCount(would.tokensAfter)}`);
    } else if (kind === "compact") {
      this.#isBusy = true;
      try {
        if (await compact(this.app, session, would, this.#budget, this.#force)) {
          this.panel.dispose();
        }
      } finally {
        this.#isBusy = false;
      }
    }
  }

  protected async ask(token: vscode.CancellationToken): Promise<readonly [string, ToPage] | null> {
    const { server } = this.app;
    const sessionId = this.#sessionId;
    const how = { strategy: "checkpoint", placement: "manual", into: "new", force: this.#force };
    const preview = (digestTokens: number | null) => {
      const asked = { sessionId, ...how, digestTokens, workDoneToken: null };
      return server.request("compactPreview", asked, token);
    };
    const { summary: session } = await server.request("session", { sessionId }, token);
    const usual = this.#usual ?? (await preview(null));
    const would = this.#budget === null ? usual : await preview(this.#budget);
    const { contents } = would;
    if (usual.contents === null || contents === null || token.isCancellationRequested) {
      return null;
    }
    this.#usual = usual;
    this.#shown = { session, would };
    const name = cut(subject(session), 80);
    const { tokensBefore, tokensBeforeSource, tokensAfter } = would;
    const { sizeText, contextWindow, remarkText } = would;
    const sizes = { tokensBefore, tokensBeforeSource, tokensAfter };
    const figures = { ...sizes, sizeText, contextWindow, remarkText };
    const view = { sessionId, name, would: figures, contents, usual: usual.contents.digest };
    return [`Compact “${cut(name, 40)}”`, { kind: "compaction", ...view }];
  }
}
