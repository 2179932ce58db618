/** The preview of a restore in a tab: the user changes its options and starts it. */

import type * as vscode from "vscode";
import { showNew } from "./app.ts";
import { showWhatChanged } from "./changes.ts";
import { answering, Unanswered } from "./client.ts";
import { inform, runCommand } from "./messages.ts";
import type { FromPage, ToPage } from "./model/pages.ts";
import type { Remedy } from "./model/refusals.ts";
import {
  doneSince,
  type Mode,
  nameOf,
  notice,
  type PreviewState,
  type RestoreOptions,
  readOptions,
  sessionName,
} from "./model/restore.ts";
import { AnsweredPage, type Tab } from "./panel.ts";
import type { Restored, SessionSummary } from "./protocol.ts";
import { attempt, longRequest } from "./requests.ts";

export class RestorePreview extends AnsweredPage {
  readonly #load: () => void;
  readonly #of: Pick<PreviewState, "sessionId" | "checkpointId">;
  #options: RestoreOptions;
  #isBusy = false;
  /** The start of a restore whose result is not known; else null. */
  #unsureSince: number | null = null;
  /** A message to show beside the preview. */
  #aside: string | null = null;
  /** The data behind the page, as text; undefined while it shows an error. */
  #shown: string | undefined;

  constructor(tab: Tab<PreviewState>) {
    super(tab);
    const { sessionId, checkpointId, options } = tab.begin;
    this.#load = tab.load;
    this.#of = { sessionId, checkpointId };
    this.#options = options;
  }

  /** Change to a mode, if one is given. */
  changeMode(mode: Mode | null): void {
    if (mode !== null && mode !== this.#options.mode) {
      this.#options = { ...this.#options, mode };
      this.#load();
    }
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    return changes.has(this.#of.sessionId);
  }

  protected override async changed(): Promise<void> {
    if (!this.#isBusy && !(await this.#isCurrent())) {
      await this.look();
    }
  }

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "options":
        this.#options = message.options;
        return;
      case "preview":
        this.#aside = null;
        this.#options = message.options;
        return this.look();
      case "restore":
        return this.#restore(message.options);
      case "file":
        return attempt(() => this.#showFile(message.uri));
      case "cancel":
        return this.panel.dispose();
      default:
        return undefined;
    }
  }

  /** Compare a file with what it was at the end of the marker's turn. */
  async #showFile(uri: string): Promise<void> {
    const { marker } = await this.#ground();
    if (marker !== null) {
      const { sessionId, turnId } = marker;
      const { summary } = await this.app.server.request("session", { sessionId });
      await showWhatChanged(this.app, summary, { uri, hash: null, turnId, words: "at the marker" });
    }
  }

  /** Whether the session and the data behind the page are unchanged. */
  async #isCurrent(): Promise<boolean> {
    try {
      const { sessionId } = this.#of;
      const [ground] = await Promise.all([
        this.#ground(),
        this.app.server.request("session", { sessionId }),
      ]);
      return JSON.stringify(ground) === this.#shown;
    } catch {
      return false;
    }
  }

  protected async ask(token: vscode.CancellationToken): Promise<readonly [string, ToPage] | null> {
    const { server } = this.app;
    if (this.#unsureSince !== null && (await this.#isDone(this.#unsureSince))) {
      return null;
    }
    const options = this.#options;
    const asked = { ...this.#params(options), workDoneToken: null };
    // Read before the preview: a change in between causes one more look and is never missed.
    const ground = await this.#ground();
    const would = await server.request("restorePreview", asked, token);
    const { label, checkpointId, sourceSessionId } = would;
    const source = sessionName(await this.#source(sourceSessionId), sourceSessionId);
    const turn = ground.marker?.turnNumber ?? null;
    if (!token.isCancellationRequested) {
      this.#shown = JSON.stringify(ground);
    }
    const view = { ...this.#of, options, would, source, turn };
    return [`Restore “${nameOf(label, checkpointId)}”`, { kind: "preview", ...view }];
  }

  protected override show(title: string, view: ToPage): void {
    super.show(title, view);
    if (this.#aside !== null) {
      this.complain(this.#aside, false);
    }
  }

  protected override complain(sentence: string, again: boolean, remedies?: readonly Remedy[]) {
    this.#shown = again ? undefined : this.#shown;
    const unsure = "When the server runs again, this page shows whether the branch was opened.";
    const isUnsure = again && this.#unsureSince !== null;
    super.complain(isUnsure ? `${sentence} ${unsure}` : sentence, again, remedies);
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
      const { server } = this.app;
      await answering(server);
      const done = await longRequest(server, "Restoring", "restore", this.#params(options));
      if (done === undefined) {
        this.complain("Cancelled. Nothing was written.", false);
      } else {
        this.panel.dispose();
        void attempt(() => this.#offer(done));
      }
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        throw error;
      }
      this.#unsureSince = began;
      await this.look();
    } finally {
      this.#isBusy = false;
    }
  }

  async #offer({ sessionId, operationId, ...done }: Restored): Promise<void> {
    if (sessionId !== null) {
      void attempt(() => showNew(this.app, sessionId));
    }
    await inform(notice(done), {
      "Resume in Terminal": () => runCommand("resumeSession", { sessionId }),
      Details: () => runCommand("showRestoreDetails", { operationId }),
    });
  }

  /** After the server ended: whether the branch is there; then the page gives way to its details. */
  async #isDone(began: number): Promise<boolean> {
    // A branch also shows markers of its source, so the restore may belong to another session.
    const { items } = await this.app.server.request("restores", { sessionId: null });
    this.#unsureSince = null;
    const made = doneSince(items, this.#of.checkpointId, began);
    if (made === undefined) {
      this.#aside = "The server ended before it answered. No branch was opened.";
      return false;
    }
    this.panel.dispose();
    await runCommand("showRestoreDetails", { operationId: made.operationId });
    return true;
  }

  #params(options: RestoreOptions) {
    const { reason, ...others } = readOptions(options);
    return { ...this.#of, ...others, reason: reason === "" ? null : reason };
  }

  async #source(sessionId: string): Promise<SessionSummary | null> {
    try {
      return (await this.app.server.request("session", { sessionId })).summary;
    } catch {
      return null;
    }
  }

  /** What a preview depends on besides turns, which never change. */
  async #ground() {
    const { server } = this.app;
    const { sessionId, checkpointId } = this.#of;
    const [marks, pins, notes] = await Promise.all([
      server.request("marks", { sessionId }),
      server.request("pins", { sessionId }),
      server.request("notes", { sessionId }),
    ]);
    const marker = marks.items.find((each) => each.checkpointId === checkpointId) ?? null;
    return { marker, pins: pins.items, notes: notes.items };
  }
}
