/** Pushes a session after a preview in a tab: exactly the previewed lines are sent. */

import type * as vscode from "vscode";
import type { Push, PushParams } from "../client/protocol.ts";
import { longRequest } from "../client/requests.ts";
import type { App } from "../common/app.ts";
import type { FromPage, ToPage } from "../common/model/pages.ts";
import { cut, subject } from "../common/model/text.ts";
import { AnsweredPage, type Tab, Tabs } from "../common/panel.ts";
import { pushedWords, pushView, shownIn } from "./model/preview.ts";
import { type Remote, remoteOf } from "./model/texts.ts";

/** The push previews of this window, one per session. */
export function pushPreviews(app: App, extension: vscode.Uri) {
  return new Tabs(app, extension, "push", ["sessionId"], PushPreview);
}

/** The data of a preview. */
interface Shown {
  readonly name: string;
  readonly remote: Remote;
  readonly push: Push;
}

export class PushPreview extends AnsweredPage {
  protected override readonly canForce = true;
  protected override readonly waits = "The remote is asked again when you try again.";
  readonly #sessionId: string;
  #team: string | null = null;
  /** Whether to push a session with many secrets, with all of them redacted. */
  #allowRedacted = false;
  #shown: Shown | null = null;
  #isBusy = false;

  constructor(tab: Tab<"sessionId">) {
    super(tab);
    this.#sessionId = tab.ids.sessionId;
  }

  /** The preview stays the same while the session grows: only the previewed lines are sent. */
  protected concerns(): boolean {
    return false;
  }

  /** A page that becomes visible again makes no request: that would open a connection. */
  protected override changed(): void {}

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "reader": {
        this.#team = message.team;
        const [session] = this.#shown?.push.sessions ?? [];
        return session?.state === "unchanged" ? this.look() : undefined;
      }
      case "push":
        return this.#send(message.team);
      case "remedy": // the only remedy handled by the page
        this.#allowRedacted = true;
        return this.look();
      case "cancel":
        return this.close();
      default:
        return undefined;
    }
  }

  /** Make a new preview, unless a push is running. */
  renew(): void {
    if (!this.#isBusy) {
      this.#allowRedacted = false;
      void this.look();
    }
  }

  /** Nothing can be pushed without a current preview. */
  protected override refuse(error: unknown, again: boolean): void {
    this.#shown = again ? null : this.#shown;
    super.refuse(error, again);
  }

  protected async ask(token: vscode.CancellationToken): Promise<readonly [string, ToPage] | null> {
    const { server } = this.app;
    const sessionId = this.#sessionId;
    const { summary } = await server.request("session", { sessionId }, token);
    const remote = remoteOf(await server.request("remote", {}, token));
    const asked = this.#params(this.#team, null);
    const push = await longRequest(server, "Reading the session for a push", "push", asked, token);
    if (push === undefined || remote === null) {
      if (!token.isCancellationRequested) {
        this.close(); // the user cancelled
      }
      return null;
    }
    const name = cut(subject(summary), 80);
    this.#shown = { name, remote, push };
    const view = pushView(name, push, remote);
    return view === null ? null : [`Push “${name}”`, view];
  }

  async #send(team: string | null): Promise<void> {
    const shown = this.#shown;
    if (shown === null || this.#isBusy) {
      return;
    }
    const { name, remote, push } = shown;
    this.#isBusy = true;
    try {
      const asked = this.#params(team, shownIn(push));
      const done = await longRequest(this.app.server, "Pushing the session", "push", asked);
      const words = done === undefined ? "" : pushedWords(done, remote);
      const view = pushView(name, push, remote, words);
      if (view !== null) {
        this.show(this.panel.title, view); // a cancelled push can be repeated
      }
      if (done !== undefined) {
        this.app.tree.remote.refresh();
      }
    } finally {
      this.#isBusy = false;
    }
  }

  #params(team: string | null, shown: PushParams["shown"]): Omit<PushParams, "workDoneToken"> {
    const chosen = { sessionIds: [this.#sessionId], cwd: null, since: null };
    return { ...chosen, team, allowRedacted: this.#allowRedacted, dryRun: shown === null, shown };
  }
}
