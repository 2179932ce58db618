/** The preview of a compaction in a tab: what is installed, for the budget that the user chooses. */

import * as vscode from "vscode";
import type { App } from "./app.ts";
import { answering, awake } from "./client.ts";
import { compact } from "./compaction.ts";
import {
  type CompactionState,
  type CompactionView,
  compactionState,
} from "./model/compactionPage.ts";
import { historyText } from "./model/documents.ts";
import type { FromPage } from "./model/pages.ts";
import { whyDown } from "./model/status.ts";
import { cut, subject, tokenCount } from "./model/text.ts";
import { Page, pagesAt, SessionTabs } from "./panel.ts";
import {
  type Compacted,
  CompactPreviewRequest,
  SessionRequest,
  type SessionSummary,
} from "./protocol.ts";
import { showDone } from "./requests.ts";

const TYPE = "codexCheckpoints.compactionPreview";

/** A session that Codex writes is read again when it has rested. */
const RESTED_MS = 1000;

export type Previewed = Pick<CompactionState, "sessionId" | "budget">;

/** The previews of this window, one for a session. */
export function compactionPreviews(app: App, extension: vscode.Uri): SessionTabs<Previewed> {
  const folder = pagesAt(extension);
  return new SessionTabs<Previewed>(TYPE, compactionState, (panel, { sessionId, budget }, gone) => {
    return new CompactionPreview(app, folder, panel, sessionId, budget, gone).page;
  });
}

class CompactionPreview {
  readonly page: Page;
  readonly #app: App;
  readonly #sessionId: string;
  /** The budget that the user chose; null for the usual one. */
  #budget: number | null;
  #asking = new vscode.CancellationTokenSource();
  /** Whether to compact although the context gets no smaller, or the turn is open. */
  #force = false;
  #usual: Compacted | null = null;
  #shown: { readonly session: SessionSummary; readonly would: Compacted } | null = null;
  #isBusy = false;

  constructor(
    app: App,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    sessionId: string,
    budget: number | null,
    gone: () => void,
  ) {
    this.#app = app;
    this.#sessionId = sessionId;
    this.#budget = budget;
    let resting: NodeJS.Timeout | undefined;
    const subscription = app.feed.onDidChange((changes) => {
      const down = whyDown(app.server.state);
      if (down !== null) {
        this.page.complain(down, true);
      } else if (panel.visible && (changes === null || changes.has(sessionId))) {
        clearTimeout(resting);
        resting = setTimeout(() => void this.#look(), RESTED_MS);
      }
    });
    this.page = new Page(
      folder,
      "compaction",
      panel,
      (message) => void this.#handle(message),
      () => {
        subscription.dispose();
        clearTimeout(resting);
        this.#asking.cancel();
        gone();
      },
    );
  }

  async #handle(message: FromPage): Promise<void> {
    try {
      switch (message.kind) {
        case "ready":
          return await this.#look();
        case "again":
          await awake(this.#app.server);
          return await this.#look();
        case "budget":
          this.#budget = message.budget;
          return await this.#show();
        case "record":
          return await this.#record(message.ref);
        case "remedy": // "Go On Anyway": the page handles no other
          this.#force = true;
          return await this.#look();
        default:
          return await this.#act(message.kind);
      }
    } catch (error) {
      this.page.refuse(error, false);
    }
  }

  /** Open a record beside the page that quotes it. */
  #record(ref: string): Promise<void> {
    const beside = vscode.ViewColumn.Beside;
    return this.#app.documents.openRecord({ sessionId: this.#sessionId }, ref, beside);
  }

  /** Do something with what is shown. */
  async #act(kind: FromPage["kind"]): Promise<void> {
    const shown = this.#shown;
    if (shown === null || this.#isBusy) {
      return;
    }
    const { session, would } = shown;
    if (kind === "diff") {
      await this.#app.documents.compareHistories(session, this.#budget);
    } else if (kind === "copy") {
      await vscode.env.clipboard.writeText(historyText(would.replacement));
      showDone(`The replacement is copied: ${tokenCount(would.tokensAfter)}`);
    } else if (kind === "compact") {
      this.#isBusy = true;
      try {
        if (await compact(this.#app, session, would, this.#budget, this.#force)) {
          this.page.dispose();
        }
      } finally {
        this.#isBusy = false;
      }
    }
  }

  /** Show what the session is now. */
  #look(): Promise<void> {
    this.#usual = null;
    return this.#show();
  }

  /** Show the preview for the chosen budget; a newer call cancels an older one. */
  async #show(): Promise<void> {
    this.#asking.cancel();
    this.#asking = new vscode.CancellationTokenSource();
    const { token } = this.#asking;
    const busy = { location: vscode.ProgressLocation.Window, title: "Reading the session" };
    try {
      await answering(this.#app.server);
      const view = await vscode.window.withProgress(busy, () => this.#answer(token));
      if (view !== null && !token.isCancellationRequested) {
        this.page.panel.title = `Compact “${view.name}”`;
        this.page.send(view);
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.#shown = null;
        this.page.refuse(error, true);
      }
    }
  }

  async #answer(token: vscode.CancellationToken): Promise<CompactionView | null> {
    const { server } = this.#app;
    const sessionId = this.#sessionId;
    const how = { strategy: "checkpoint", placement: "manual", into: "new", force: this.#force };
    const preview = (digestTokens: number | null) => {
      const asked = { sessionId, ...how, digestTokens, workDoneToken: null };
      return server.request(CompactPreviewRequest, asked, token);
    };
    const { summary: session } = await server.request(SessionRequest, { sessionId }, token);
    const usual = this.#usual ?? (await preview(null));
    const would = this.#budget === null ? usual : await preview(this.#budget);
    if (usual.contents === null || would.contents === null || token.isCancellationRequested) {
      return null;
    }
    this.#usual = usual;
    this.#shown = { session, would };
    const { contents, tokensBefore, tokensBeforeSource, tokensAfter } = would;
    const { tokensBeside, bound, contextWindow, remark } = would;
    return {
      kind: "compaction",
      sessionId,
      name: cut(subject(session), 80),
      would: {
        ...{ tokensBefore, tokensBeforeSource, tokensAfter, tokensBeside, bound },
        ...{ contextWindow, remark },
      },
      contents,
      usual: usual.contents.digest,
    };
  }
}
