/** The preview of a restore: looked at in a tab, changed at will, done by one button. */

import * as vscode from "vscode";
import { answering, awake, type Server, Unanswered } from "./client.ts";
import type { ChangeFeed } from "./following.ts";
import {
  doneSince,
  type FromPage,
  nameOf,
  type PreviewState,
  type RestoreOptions,
  readOptions,
  sessionName,
} from "./model/restore.ts";
import { whyDown } from "./model/status.ts";
import { Page } from "./panel.ts";
import {
  MarksRequest,
  NotesRequest,
  PinsRequest,
  type Restored,
  RestorePreviewRequest,
  RestoreRequest,
  RestoresRequest,
  SessionRequest,
  type SessionSummary,
} from "./protocol.ts";
import { errorText, longRequest } from "./requests.ts";

export interface Outcome {
  readonly done: (restored: Restored) => void;
  /** It turned out to be open, after the server that opened it ended without a word. */
  readonly found: (operationId: string) => void;
  readonly gone: () => void;
}

export class RestorePreview {
  readonly page: Page;
  readonly #server: Server;
  readonly #outcome: Outcome;
  readonly #of: Pick<PreviewState, "sessionId" | "checkpointId">;
  #options: RestoreOptions;
  #asking = new vscode.CancellationTokenSource();
  #isBusy = false;
  /** When the restore began of which nobody knows yet what became; else null. */
  #unsureSince: number | null = null;
  /** What a person is to read beside what is shown, until they go on. */
  #aside: string | null = null;
  /** What the page was made of, as text; undefined while the page tells of trouble. */
  #shown: string | undefined;

  constructor(
    server: Server,
    feed: ChangeFeed,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    begin: PreviewState,
    outcome: Outcome,
  ) {
    this.#server = server;
    this.#outcome = outcome;
    this.#of = { sessionId: begin.sessionId, checkpointId: begin.checkpointId };
    this.#options = begin.options;
    const subscription = feed.onDidChange((changes) => {
      if (panel.visible && (changes === null || changes.has(begin.sessionId))) {
        void this.#changed();
      }
    });
    this.page = new Page(
      folder,
      "preview",
      panel,
      (message) => void this.#handle(message),
      () => {
        subscription.dispose();
        this.#asking.cancel();
        outcome.gone();
      },
    );
  }

  /** Come to the front, with another way to go on if one is wanted. */
  show(mode: RestoreOptions["mode"] | null): void {
    this.page.panel.reveal();
    if (mode !== null && mode !== this.#options.mode) {
      this.#options = { ...this.#options, mode };
      this.page.restart();
    }
  }

  async #handle(message: FromPage): Promise<void> {
    switch (message.kind) {
      case "ready":
        return this.#look();
      case "again":
        await awake(this.#server);
        return this.#look();
      case "options":
        this.#options = message.options;
        return;
      case "preview":
        this.#aside = null;
        return this.#preview(message.options);
      case "restore":
        return this.#restore(message.options);
      case "cancel":
        return this.page.dispose();
      default:
    }
  }

  /** The server came or went, or the session is not what it was: what is shown may not hold. */
  async #changed(): Promise<void> {
    const { state } = this.#server;
    const down = whyDown(state);
    if (down !== null) {
      this.#complain(down);
    } else if (state.kind === "ready" && !this.#isBusy && !(await this.#isStill())) {
      await this.#look();
    }
  }

  /** Whether the session is still here, and what is message of it as the page shows it. */
  async #isStill(): Promise<boolean> {
    try {
      const { sessionId } = this.#of;
      const [ground] = await Promise.all([
        this.#ground(),
        this.#server.request(SessionRequest, { sessionId }),
      ]);
      return JSON.stringify(ground) === this.#shown;
    } catch {
      return false;
    }
  }

  /** Show what would come, once it is known that it has not come yet. */
  async #look(): Promise<void> {
    if (this.#unsureSince === null || (await this.#isUndone(this.#unsureSince))) {
      await this.#preview(this.#options);
    }
  }

  /** Answer the newest question alone; nobody waits for those before it. */
  async #preview(options: RestoreOptions): Promise<void> {
    this.#options = options;
    this.#asking.cancel();
    this.#asking = new vscode.CancellationTokenSource();
    const { token } = this.#asking;
    const busy = { location: vscode.ProgressLocation.Window, title: "Reading the session" };
    try {
      await answering(this.#server);
      const answer = await vscode.window.withProgress(busy, () => this.#answer(options, token));
      if (!token.isCancellationRequested) {
        const { ground, ...told } = answer;
        const { label, checkpointId } = told.would;
        this.#shown = JSON.stringify(ground);
        this.page.panel.title = `Restore “${nameOf(label, checkpointId)}”`;
        this.page.send({ kind: "preview", ...this.#of, options, ...told });
        if (this.#aside !== null) {
          this.page.complain(this.#aside, false);
        }
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.#complain(errorText(error));
      }
    }
  }

  /** Show why nothing can be shown; what a person asks next may work. */
  #complain(sentence: string): void {
    this.#shown = undefined;
    const unsure = "Whether the branch was opened is seen when the server runs again.";
    this.page.complain(this.#unsureSince === null ? sentence : `${sentence} ${unsure}`, true);
  }

  async #answer(options: RestoreOptions, token: vscode.CancellationToken) {
    const asked = { ...this.#params(options), workDoneToken: null };
    // Looked at before: what changes meanwhile is asked for twice, and never missed.
    const ground = await this.#ground();
    const would = await this.#server.request(RestorePreviewRequest, asked, token);
    const source = await this.#source(would.sourceSessionId);
    const turn = ground.marker?.turnNumber ?? null;
    return { would, source: sessionName(source, would.sourceSessionId), turn, ground };
  }

  /** Open the branch; one that was cancelled, or could not be, leaves the page as it was. */
  async #restore(options: RestoreOptions): Promise<void> {
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    this.#aside = null;
    const began = Date.now();
    try {
      await answering(this.#server);
      const asked = this.#params(options);
      const done = await longRequest(this.#server, "Restoring", RestoreRequest, asked);
      if (done === undefined) {
        this.page.complain("Cancelled. Nothing was written.", false);
      } else {
        this.page.dispose();
        this.#outcome.done(done);
      }
    } catch (error) {
      if (error instanceof Unanswered) {
        this.#unsureSince = began;
        await this.#look();
      } else {
        this.page.complain(errorText(error), false);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  /**
   * Find out what became of a restore whose server ended: there is a whole branch, or none.  True
   * for none; else the page is closed, or says that it cannot be known yet.
   */
  async #isUndone(began: number): Promise<boolean> {
    const { checkpointId } = this.#of;
    try {
      await answering(this.#server);
      // Of all sessions: a branch shows markers of its source, and the restore stands with that.
      const { items } = await this.#server.request(RestoresRequest, { sessionId: null });
      this.#unsureSince = null;
      const made = doneSince(items, checkpointId, began);
      if (made === undefined) {
        this.#aside = "The server ended before it answered. No branch was opened.";
      } else {
        this.page.dispose();
        this.#outcome.found(made.operationId);
      }
      return made === undefined;
    } catch (error) {
      this.#complain(errorText(error));
      return false;
    }
  }

  #params(options: RestoreOptions) {
    const { mode, budget, window, reason } = readOptions(options);
    return { ...this.#of, mode, budget, window, reason: reason === "" ? null : reason };
  }

  async #source(sessionId: string): Promise<SessionSummary | null> {
    try {
      return (await this.#server.request(SessionRequest, { sessionId })).summary;
    } catch {
      return null;
    }
  }

  /** What a preview is made of besides turns, which stay as they were: anybody may change it. */
  async #ground() {
    const { sessionId, checkpointId } = this.#of;
    const [marks, pins, notes] = await Promise.all([
      this.#server.request(MarksRequest, { sessionId }),
      this.#server.request(PinsRequest, { sessionId }),
      this.#server.request(NotesRequest, { sessionId }),
    ]);
    const marker = marks.items.find((each) => each.checkpointId === checkpointId) ?? null;
    return { marker, pins: pins.items, notes: notes.items };
  }
}
