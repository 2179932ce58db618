/** The preview of a restore in a tab: the user changes its options and starts it. */

import * as vscode from "vscode";
import { answering, Unanswered } from "../client/client.ts";
import type { Remedy } from "../client/model/refusals.ts";
import type { Marker, Restored, RestoredFiles, SessionSummary } from "../client/protocol.ts";
import { attempt, errorText, longRequest } from "../client/requests.ts";
import { showNew } from "../common/app.ts";
import { inform, runCommand } from "../common/messages.ts";
import { RESTRICTED } from "../common/model/controls.ts";
import type { FromPage, ToPage } from "../common/model/pages.ts";
import { harmless } from "../common/model/text.ts";
import { AnsweredPage, type Ids, type Tab } from "../common/panel.ts";
import { showWhatChanged } from "../page/changes.ts";
import {
  type FilesPlace,
  planOf,
  showDifference,
  undoFiles,
  withoutUnsaved,
  writeFiles,
} from "./files.ts";
import type { Scope } from "./model/files.ts";
import {
  type Mode,
  nameOf,
  notice,
  type RestoreOptions,
  readOptions,
  sessionName,
} from "./model/preview.ts";

export class RestorePreview extends AnsweredPage {
  readonly #of: Ids<"sessionId" | "checkpointId">;
  readonly #trusted: vscode.Disposable;
  #options = readOptions({});
  #isBusy = false;
  /** Whether a restore was started whose outcome is unknown. */
  #isUnsure = false;
  #plan: RestoredFiles | null = null;
  /** The number of the latest plan request; older answers are ignored. */
  #planning = 0;
  /** The newest restore of files from this page, or its undo. */
  #done: RestoredFiles | null = null;
  #canUndo = false;

  constructor(tab: Tab<"sessionId" | "checkpointId">) {
    super(tab);
    this.#of = tab.ids;
    this.#trusted = vscode.workspace.onDidGrantWorkspaceTrust(() => this.#showFiles());
  }

  /** Switch to a mode, if one is given. */
  changeMode(mode: Mode | null): void {
    if (mode !== null && mode !== this.#options.mode) {
      this.#options = { ...this.#options, mode };
      this.open();
    }
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    return changes.has(this.#of.sessionId);
  }

  protected override leave(): void {
    super.leave();
    this.#trusted.dispose();
  }

  protected override async look(): Promise<void> {
    await super.look();
    await this.#showFiles();
  }

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "preview":
        this.#options = message.options;
        return super.look();
      case "restore":
        return this.#restore(message.options, message.scope, message.files);
      case "undo":
        return this.#undoFiles();
      case "file":
        return attempt(() => this.#showFile(message.uri));
      case "cancel":
        return this.panel.dispose();
      default:
        return undefined;
    }
  }

  get #place(): FilesPlace {
    return { ...this.#of, turnId: null };
  }

  /** Show the files that can be restored; a separate request, since it reads the whole session. */
  async #showFiles(): Promise<void> {
    this.#planning += 1;
    const asked = this.#planning;
    const found = vscode.workspace.isTrusted
      ? await planOf(this.app, this.#place).catch(errorText)
      : RESTRICTED;
    if (asked === this.#planning) {
      this.#plan = typeof found === "string" ? null : found;
      const sentence = typeof found === "string" ? found : found.headline;
      const done = { done: this.#done, canUndo: this.#canUndo };
      this.add({ kind: "files", plan: this.#plan, sentence, ...done });
    }
  }

  /** Show a file's diff against the end of the marker's turn. */
  async #showFile(uri: string): Promise<void> {
    const isPlanned = this.#plan?.rows.some(({ path }) => path === uri) === true;
    if (isPlanned && (await showDifference(this.app, this.#place, uri))) {
      return;
    }
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
      this.complain("The server ended before it answered.", false); // a retry might repeat it
    }
  }

  protected override complain(sentence: string, again: boolean, remedies?: readonly Remedy[]) {
    const unsure = this.#isUnsure
      ? " Use “Show Restores…” to see whether the branch was opened."
      : "";
    super.complain(`${sentence}${unsure}`, again, remedies);
  }

  /** Restore; the page stays open if that fails or is cancelled. */
  async #restore(options: RestoreOptions, scope: Scope, paths: readonly string[]): Promise<void> {
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    this.#isUnsure = false;
    try {
      const { server } = this.app;
      await answering(server);
      // The files come first, so that the branch finds them restored.
      const files = scope === "conversation" ? null : await this.#restoreFiles(paths);
      if (files === undefined) {
        this.complain("Cancelled. Nothing was written.", false);
        return;
      }
      if (scope === "files") {
        return;
      }
      const done = await longRequest(server, "Restoring", "restore", this.#params(options));
      if (done === undefined) {
        const written = files === null ? "Nothing was written." : "The session was not restored.";
        this.complain(`Cancelled. ${written}`, false);
      } else {
        this.panel.dispose();
        void attempt(() => this.#offer(done, files));
      }
    } catch (error) {
      this.#isUnsure = error instanceof Unanswered;
      this.refuse(error, this.#isUnsure);
    } finally {
      this.#isBusy = false;
    }
  }

  /** Restore files and show the result; undefined if the user declines. */
  async #restoreFiles(paths: readonly string[]): Promise<RestoredFiles | undefined> {
    const plan = this.#plan;
    const chosen = plan?.rows.filter(({ path, offered }) => offered && paths.includes(path)) ?? [];
    const ready = plan && (await withoutUnsaved(plan.folder, chosen));
    if (!ready || ready.length === 0) {
      return undefined;
    }
    this.#done = await writeFiles(this.app, this.#place, ready);
    this.#canUndo = this.#done.operationId !== null;
    await this.#showFiles();
    return this.#done;
  }

  async #undoFiles(): Promise<void> {
    const operationId = this.#canUndo ? this.#done?.operationId : null;
    if (operationId) {
      this.#done = await undoFiles(this.app, operationId);
      this.#canUndo = false;
      await this.#showFiles();
    }
  }

  /** Show the branch as after a compaction, and offer to continue it or to undo it. */
  async #offer(done: Restored, files: RestoredFiles | null): Promise<void> {
    const { sessionId, operationId, sourceSessionId } = done;
    if (sessionId === null) {
      return;
    }
    void attempt(() => showNew(this.app, sessionId, sourceSessionId));
    const said = files === null ? notice(done) : harmless(`${done.headline} ${files.headline}`);
    await inform(said, {
      "Resume in Terminal": () => runCommand("resumeSession", { sessionId }),
      Details: () => runCommand("showRestoreDetails", { operationId }),
      Undo: () => this.#undo(sessionId, sourceSessionId, files),
    });
  }

  /** Delete the branch, and undo its restore of files. */
  async #undo(branch: string, source: string, files: RestoredFiles | null): Promise<void> {
    const { server } = this.app;
    await attempt(async () => {
      await server.request("delete", { sessionId: branch, force: false });
      void attempt(() => showNew(this.app, source, branch));
      const sentence = "Restore undone. Go on in the original session.";
      vscode.window.setStatusBarMessage(sentence, 8000);
    });
    const operationId = files?.operationId ?? null;
    if (operationId !== null) {
      await attempt(async () => {
        await inform(harmless((await undoFiles(this.app, operationId)).headline));
      });
    }
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
