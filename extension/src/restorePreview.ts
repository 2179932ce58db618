/** The preview of a restore in a tab: the user changes its options and starts it. */

import type * as vscode from "vscode";
import { showNew } from "./app.ts";
import { showWhatChanged } from "./changes.ts";
import { answering, Unanswered } from "./client.ts";
import { inform, runCommand } from "./messages.ts";
import type { FromPage, ToPage } from "./model/pages.ts";
import type { Remedy } from "./model/refusals.ts";
import {
  type Mode,
  nameOf,
  notice,
  type RestoreOptions,
  readOptions,
  sessionName,
} from "./model/restore.ts";
import { AnsweredPage, type Ids, type Tab } from "./panel.ts";
import type { Marker, Restored, SessionSummary } from "./protocol.ts";
import { attempt, longRequest } from "./requests.ts";

export class RestorePreview extends AnsweredPage {
  readonly #load: () => void;
  readonly #of: Ids<"sessionId" | "checkpointId">;
  #options = readOptions({});
  #isBusy = false;
  /** Whether a restore was asked for whose end nobody told. */
  #isUnsure = false;

  constructor(tab: Tab<"sessionId" | "checkpointId">) {
    super(tab);
    this.#load = tab.load;
    this.#of = tab.ids;
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

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "preview":
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
    const marker = await this.#marker();
    if (marker !== undefined) {
      const { sessionId, turnId } = marker;
      const { summary } = await this.app.server.request("session", { sessionId });
      await showWhatChanged(this.app, summary, { uri, hash: null, turnId, words: "at the marker" });
    }
  }

  protected async ask(token: vscode.CancellationToken): Promise<readonly [string, ToPage]> {
    const { server } = this.app;
    const options = this.#options;
    const asked = { ...this.#params(options), workDoneToken: null };
    const would = await server.request("restorePreview", asked, token);
    const { label, checkpointId, sourceSessionId } = would;
    const source = sessionName(await this.#source(sourceSessionId), sourceSessionId);
    const turn = (await this.#marker())?.turnNumber ?? null;
    const view = { ...this.#of, options, would, source, turn };
    return [`Restore “${nameOf(label, checkpointId)}”`, { kind: "preview", ...view }];
  }

  protected override show(title: string, view: ToPage): void {
    super.show(title, view);
    if (this.#isUnsure) {
      this.complain("The server ended before it answered.", false); // who restores again may have two
    }
  }

  protected override complain(sentence: string, again: boolean, remedies?: readonly Remedy[]) {
    const unsure = this.#isUnsure ? " “Show Restores…” tells whether the branch was opened." : "";
    super.complain(`${sentence}${unsure}`, again, remedies);
  }

  /** Restore; if that is cancelled or fails the page stays. */
  async #restore(options: RestoreOptions): Promise<void> {
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    this.#isUnsure = false;
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
      this.#isUnsure = error instanceof Unanswered;
      this.refuse(error, this.#isUnsure);
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

  async #marker(): Promise<Marker | undefined> {
    const { sessionId, checkpointId } = this.#of;
    const { items } = await this.app.server.request("marks", { sessionId });
    return items.find((each) => each.checkpointId === checkpointId);
  }
}
