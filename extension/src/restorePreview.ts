/** The preview of a restore in a tab: the user changes its options and starts it. */

import * as vscode from "vscode";
import type { App } from "./app.ts";
import { showWhatChanged } from "./changes.ts";
import { answering, awake, type Server, Unanswered } from "./client.ts";
import type { FromPage } from "./model/pages.ts";
import {
  doneSince,
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
import { attempt, errorText, longRequest } from "./requests.ts";

export interface Outcome {
  readonly done: (restored: Restored) => void;
  /** The branch exists, although the server ended before it answered. */
  readonly found: (operationId: string) => void;
  readonly gone: () => void;
}

export class RestorePreview {
  readonly page: Page;
  readonly #app: App;
  readonly #server: Server;
  readonly #outcome: Outcome;
  readonly #of: Pick<PreviewState, "sessionId" | "checkpointId">;
  #options: RestoreOptions;
  #asking = new vscode.CancellationTokenSource();
  #isBusy = false;
  /** The start of a restore whose result is not known; else null. */
  #unsureSince: number | null = null;
  /** A message to show beside the preview. */
  #aside: string | null = null;
  /** The data behind the page, as text; undefined while it shows an error. */
  #shown: string | undefined;

  constructor(
    app: App,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    begin: PreviewState,
    outcome: Outcome,
  ) {
    const { server, feed } = app;
    this.#app = app;
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

  /** Show the tab, and change the mode if one is given. */
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
      case "file":
        return attempt(() => this.#showFile(message.uri));
      case "cancel":
        return this.page.dispose();
      default:
    }
  }

  /** Compare a file with what it was at the end of the marker's turn. */
  async #showFile(uri: string): Promise<void> {
    const { marker } = await this.#ground();
    if (marker !== null) {
      const { sessionId, turnId } = marker;
      const { summary } = await this.#app.server.request(SessionRequest, { sessionId });
      await showWhatChanged(this.#app, summary, {
        uri,
        hash: null,
        turnId,
        words: "at the marker",
      });
    }
  }

  /** React to a change of the server or the session. */
  async #changed(): Promise<void> {
    const { state } = this.#server;
    const down = whyDown(state);
    if (down !== null) {
      this.#complain(down);
    } else if (state.kind === "ready" && !this.#isBusy && !(await this.#isCurrent())) {
      await this.#look();
    }
  }

  /** Whether the session and the data behind the page are unchanged. */
  async #isCurrent(): Promise<boolean> {
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

  /** Show the preview, unless an interrupted restore was done after all. */
  async #look(): Promise<void> {
    if (this.#unsureSince === null || (await this.#isUndone(this.#unsureSince))) {
      await this.#preview(this.#options);
    }
  }

  /** Show the preview for these options; a newer call cancels an older one. */
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
        const { ground, ...contents } = answer;
        const { label, checkpointId } = contents.would;
        this.#shown = JSON.stringify(ground);
        this.page.panel.title = `Restore “${nameOf(label, checkpointId)}”`;
        this.page.send({ kind: "preview", ...this.#of, options, ...contents });
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

  #complain(sentence: string): void {
    this.#shown = undefined;
    const unsure = "When the server runs again, this page shows whether the branch was opened.";
    this.page.complain(this.#unsureSince === null ? sentence : `${sentence} ${unsure}`, true);
  }

  async #answer(options: RestoreOptions, token: vscode.CancellationToken) {
    const asked = { ...this.#params(options), workDoneToken: null };
    // Read before the preview: a change in between causes one more look and is never missed.
    const ground = await this.#ground();
    const would = await this.#server.request(RestorePreviewRequest, asked, token);
    const source = await this.#source(would.sourceSessionId);
    const turn = ground.marker?.turnNumber ?? null;
    return { would, source: sessionName(source, would.sourceSessionId), turn, ground };
  }

  /** Restore; if that is cancelled or fails the page stays. */
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
        this.page.refuse(error, false);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  /** After the server ended: true if there is no branch; else close the page, or show an error. */
  async #isUndone(began: number): Promise<boolean> {
    const { checkpointId } = this.#of;
    try {
      await answering(this.#server);
      // A branch also shows markers of its source, so the restore may belong to another session.
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
    const { reason, ...others } = readOptions(options);
    return { ...this.#of, ...others, reason: reason === "" ? null : reason };
  }

  async #source(sessionId: string): Promise<SessionSummary | null> {
    try {
      return (await this.#server.request(SessionRequest, { sessionId })).summary;
    } catch {
      return null;
    }
  }

  /** What a preview depends on besides turns, which never change. */
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
