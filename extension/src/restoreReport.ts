/** The details of a past restore, in a tab that survives a reload of the window. */

import * as vscode from "vscode";
import { answering, awake, type Server } from "./client.ts";
import type { ChangeFeed } from "./following.ts";
import type { FromPage } from "./model/pages.ts";
import { type Details, type Mode, nameOf } from "./model/restore.ts";
import { Newest, whyDown } from "./model/status.ts";
import { Page } from "./panel.ts";
import {
  AuditRequest,
  LineageRequest,
  type RestoreDetails,
  RestoreDetailsRequest,
  ShowRequest,
} from "./protocol.ts";

export interface Ways {
  readonly resume: (sessionId: string) => void;
  readonly another: (
    place: { readonly sessionId: string; readonly checkpointId: string },
    mode: Mode,
  ) => void;
  readonly gone: () => void;
}

export class RestoreReport {
  readonly page: Page;
  readonly #server: Server;
  readonly #operationId: string;
  readonly #ways: Ways;
  readonly #loads = new Newest();
  #details: RestoreDetails | null = null;

  constructor(
    server: Server,
    feed: ChangeFeed,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    operationId: string,
    ways: Ways,
  ) {
    this.#server = server;
    this.#operationId = operationId;
    this.#ways = ways;
    const subscription = feed.onDidChange((changes) => {
      const ends = [this.#details?.sessionId, this.#details?.sourceSessionId];
      const concerns = changes === null || ends.some((id) => id !== undefined && changes.has(id));
      const down = whyDown(server.state);
      if (down !== null) {
        this.page.complain(down, true);
      } else if (concerns && panel.visible && server.state.kind === "ready") {
        void this.#load();
      }
    });
    this.page = new Page(
      folder,
      "details",
      panel,
      (message) => void this.#handle(message),
      () => {
        subscription.dispose();
        ways.gone();
      },
    );
  }

  show(): void {
    this.page.panel.reveal();
  }

  async #handle(message: FromPage): Promise<void> {
    if (message.kind === "again") {
      await awake(this.#server);
    }
    if (message.kind === "ready" || message.kind === "again") {
      return this.#load();
    }
    const details = this.#details;
    if (details === null) {
      return;
    }
    await answering(this.#server);
    const { sessionId, sourceSessionId, checkpointId } = details;
    switch (message.kind) {
      case "goTo":
        await vscode.commands.executeCommand("codexCheckpoints.goToSession", {
          sessionId: message.sessionId,
        });
        return;
      case "compare":
        await vscode.commands.executeCommand("codexCheckpoints.compareWithSource", { sessionId });
        return;
      case "resume":
        return this.#ways.resume(sessionId);
      case "another":
        return this.#ways.another({ sessionId: sourceSessionId, checkpointId }, message.mode);
      default:
    }
  }

  async #load(): Promise<void> {
    const operationId = this.#operationId;
    const isNewest = this.#loads.begin();
    try {
      await answering(this.#server);
      const details = await this.#server.request(RestoreDetailsRequest, { operationId });
      const [events, lineage, state] = await Promise.all([
        this.#server.request(AuditRequest, { sessionId: null, operationId }),
        this.#lineage(details),
        this.#state(details),
      ]);
      if (!isNewest()) {
        return;
      }
      this.#details = details;
      this.page.panel.title = `Restored “${nameOf(details.label, details.checkpointId)}”`;
      this.page.send({ kind: "details", details, events: events.items, lineage, state });
    } catch (error) {
      if (isNewest()) {
        this.page.refuse(error, true);
      }
    }
  }

  /** The lineage, if the branch or the source still exists. */
  async #lineage(details: RestoreDetails): Promise<Details["lineage"]> {
    const { branchAvailable, sourceAvailable, sourceSessionId } = details;
    if (!branchAvailable && !sourceAvailable) {
      return [];
    }
    const sessionId = branchAvailable ? details.sessionId : sourceSessionId;
    try {
      return (await this.#server.request(LineageRequest, { sessionId })).nodes;
    } catch {
      return []; // it went away meanwhile: the record tells the chain
    }
  }

  /** The state at the turn: from the record of a hard restore, else from the source. */
  async #state({ state, sourceAvailable, sourceTurn }: RestoreDetails): Promise<unknown> {
    if (state !== null || !sourceAvailable) {
      return state;
    }
    try {
      return JSON.parse((await this.#server.request(ShowRequest, sourceTurn)).text);
    } catch {
      return null; // the turn is gone from it
    }
  }
}
