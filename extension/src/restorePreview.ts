/** The preview of a restore: looked at in a tab, changed at will, done by one button. */

import * as vscode from "vscode";
import { answering, type Server } from "./client.ts";
import { longWork } from "./longWork.ts";
import type { FromPage, PreviewState } from "./model/pages.ts";
import { nameOf, sessionName, type Wish, wishOf } from "./model/restore.ts";
import { Page } from "./panel.ts";
import {
  type Marker,
  MarksRequest,
  type Restored,
  RestorePreviewRequest,
  RestoreRequest,
  SessionRequest,
  type SessionSummary,
} from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";

const { l10n } = vscode;

export class RestorePreview {
  readonly page: Page;
  readonly #server: Server;
  readonly #done: (restored: Restored) => void;
  readonly #of: Pick<PreviewState, "sessionId" | "checkpointId">;
  #wish: Wish;
  #asking = new vscode.CancellationTokenSource();
  #isBusy = false;

  /** Show it in a panel; `done` hears of the branch. */
  constructor(
    server: Server,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    begin: PreviewState,
    done: (restored: Restored) => void,
    gone: () => void,
  ) {
    this.#server = server;
    this.#done = done;
    this.#of = { sessionId: begin.sessionId, checkpointId: begin.checkpointId };
    this.#wish = begin.wish;
    this.page = new Page(
      folder,
      "preview",
      panel,
      (said) => void this.#hear(said),
      () => {
        this.#asking.cancel();
        gone();
      },
    );
  }

  /** Come to the front, with another way to go on if one is wanted. */
  show(mode: Wish["mode"] | null): void {
    this.page.panel.reveal();
    if (mode !== null && mode !== this.#wish.mode) {
      this.#wish = { ...this.#wish, mode };
      this.page.restart();
    }
  }

  async #hear(said: FromPage): Promise<void> {
    switch (said.kind) {
      case "ready":
        return this.#preview(this.#wish);
      case "wish":
        this.#wish = said.wish;
        return;
      case "preview":
        return this.#preview(said.wish);
      case "restore":
        return this.#restore(said.wish);
      case "cancel":
        return this.page.dispose();
      default:
    }
  }

  /** Answer the newest wish alone; nobody waits for those before it. */
  async #preview(wish: Wish): Promise<void> {
    this.#wish = wish;
    this.#asking.cancel();
    this.#asking = new vscode.CancellationTokenSource();
    const { token } = this.#asking;
    const options = {
      location: vscode.ProgressLocation.Window,
      title: l10n.t("Reading the session"),
    };
    try {
      await answering(this.#server);
      const answer = await vscode.window.withProgress(options, () => this.#answer(wish, token));
      if (!token.isCancellationRequested) {
        const { label, checkpointId } = answer.would;
        this.page.panel.title = l10n.t("Restore {0}", nameOf(label, checkpointId));
        this.page.send({ kind: "preview", ...this.#of, wish, ...answer });
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.page.complain(saysRefusal(error, l10n.t), true);
      }
    }
  }

  async #answer(wish: Wish, token: vscode.CancellationToken) {
    const asked = { ...this.#params(wish), workDoneToken: null };
    const [would, marker] = await Promise.all([
      this.#server.request(RestorePreviewRequest, asked, token),
      this.#marker(),
    ]);
    const source = await this.#source(would.sourceSessionId);
    const turn = marker?.turnNumber ?? null;
    return { would, source: sessionName(source, would.sourceSessionId, l10n.t), turn };
  }

  /** Open the branch; one that was cancelled, or could not be, leaves the page as it was. */
  async #restore(wish: Wish): Promise<void> {
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    try {
      const done = await longWork(
        this.#server,
        l10n.t("Restoring"),
        ({ workDoneToken, cancelled }) =>
          this.#server.request(RestoreRequest, { ...this.#params(wish), workDoneToken }, cancelled),
      );
      if (done === undefined) {
        this.page.complain(l10n.t("Cancelled. Nothing was written."), false);
      } else {
        this.page.dispose();
        this.#done(done);
      }
    } catch (error) {
      this.page.complain(saysRefusal(error, l10n.t), false);
    } finally {
      this.#isBusy = false;
    }
  }

  #params(wish: Wish) {
    const { mode, budget, window, reason } = wishOf(wish);
    return { ...this.#of, mode, budget, window, reason: reason === "" ? null : reason };
  }

  async #source(sessionId: string): Promise<SessionSummary | null> {
    try {
      return (await this.#server.request(SessionRequest, { sessionId })).summary;
    } catch {
      return null;
    }
  }

  async #marker(): Promise<Marker | null> {
    const { sessionId, checkpointId } = this.#of;
    const { items } = await this.#server.request(MarksRequest, { sessionId });
    return items.find((each) => each.checkpointId === checkpointId) ?? null;
  }
}
