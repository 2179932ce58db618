/** The page of a session in the remote: read-only, from a cached copy on this machine. */

import type * as vscode from "vscode";
import type { RemoteSession, SearchHit, SessionSummary } from "../client/protocol.ts";
import { longRequest } from "../client/requests.ts";
import type { App } from "../common/app.ts";
import { runCommand } from "../common/messages.ts";
import type { FromPage } from "../common/model/pages.ts";
import { cut } from "../common/model/text.ts";
import { Tabs } from "../common/panel.ts";
import type { Shared } from "../page/model/page.ts";
import { SessionPage } from "../page/page.ts";
import { type Remote, remoteOf, remoteTitle, sharedOf } from "./model/texts.ts";

/** A text that a search found in a session. */
interface FoundText {
  readonly text: string;
  readonly hit: SearchHit;
}

/** The remote session pages of this window, one per session. */
export class RemotePages extends Tabs<"sessionId", RemotePage> {
  constructor(app: App, extension: vscode.Uri) {
    super(app, extension, "remote", ["sessionId"], RemotePage);
  }

  /** Show a session, at a found text; an open page is loaded again: there may have been a push. */
  show(session: RemoteSession, found: FoundText | null = null): void {
    const ids = { sessionId: session.sessionId };
    const before = this.find(ids);
    const page = this.open(cut(remoteTitle(session), 40), ids);
    // The text may be in a turn that the page did not have so far.
    const renewed = before?.renew() ?? Promise.resolve();
    if (found !== null && found.hit.turn !== null) {
      const { turn, seq, line } = found.hit;
      const place = { kind: "place", turn, seq, found: { text: found.text, line } } as const;
      void renewed.then(() => page.sendOnceLoaded(place));
    }
  }
}

/** The messages of the page that only read. */
const READING: readonly FromPage["kind"][] = [
  ...([
    "record",
    "conversation",
    "change",
    "planAtTurn",
    "link",
    "whole",
    "losses",
    "goTo",
  ] as const),
];

class RemotePage extends SessionPage {
  protected override readonly waits =
    "This session is in the remote. It is read again when you ask for it.";
  /** The path of the cached copy; empty until it is there. */
  #path = "";
  #shared: RemoteSession | null = null;
  #remote: Remote | null = null;

  protected override get key(): string {
    return this.#path;
  }

  protected override get shared(): Shared | null {
    const [shared, remote] = [this.#shared, this.#remote];
    return shared === null || remote === null ? null : sharedOf(shared, remote, Date.now());
  }

  /** Folder and commit belong to another machine, so they must not lead to files on this one. */
  protected override asShown(session: SessionSummary): SessionSummary {
    return { ...session, sessionId: this.#path, cwd: null, git: null };
  }

  /** The cached copy does not change. */
  protected override concerns(): boolean {
    return false;
  }

  protected override changed(): void {}

  /** The page's session is not in the list, so it does not become the session in view. */
  protected override activated(): void {}

  protected override async look(): Promise<void> {
    try {
      if (await this.#fetch()) {
        await super.look();
      }
    } catch (error) {
      this.refuse(error, true);
    }
  }

  renew(): Promise<void> {
    return this.look();
  }

  /** Fetch the session into the cache if it is not there; false if the user cancels. */
  async #fetch(): Promise<boolean> {
    const { server } = this.app;
    const { sessionId } = this;
    this.#remote = remoteOf(await server.request("remote", {}));
    const found = await longRequest(server, "Reading the session", "remoteSession", { sessionId });
    if (found === undefined) {
      this.close();
      return false;
    }
    this.#path = found.path;
    this.#shared = found.session;
    return true;
  }

  protected override async handle(message: FromPage): Promise<unknown> {
    if (message.kind === "pull") {
      const [shared, remote] = [this.#shared, this.#remote];
      return runCommand("pullSession", { kind: "remoteSession", shared, remote });
    }
    const isReading = message.kind === "turn" && message.action === "changes";
    return isReading || READING.includes(message.kind) ? super.handle(message) : undefined;
  }
}
