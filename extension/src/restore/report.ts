/** The details of a past restore, in a tab that survives a reload of the window. */

import { answering } from "../client/client.ts";
import type { RestoreDetails } from "../client/protocol.ts";
import { runCommand } from "../common/messages.ts";
import type { FromPage, ToPage } from "../common/model/pages.ts";
import { AnsweredPage, type Tab } from "../common/panel.ts";
import { type Details, nameOf } from "./model/preview.ts";

export class RestoreReport extends AnsweredPage {
  readonly #operationId: string;
  #details: RestoreDetails | null = null;

  constructor(tab: Tab<"operationId">) {
    super(tab);
    this.#operationId = tab.ids.operationId;
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    const ends = [this.#details?.sessionId, this.#details?.sourceSessionId];
    return ends.some((id) => id !== undefined && changes.has(id));
  }

  protected async handle(message: FromPage): Promise<unknown> {
    if (this.#details === null) {
      return;
    }
    await answering(this.app.server);
    const { sessionId, sourceSessionId, checkpointId } = this.#details;
    switch (message.kind) {
      case "goTo":
        return runCommand("goToSession", { sessionId: message.sessionId });
      case "resume":
        return runCommand("resumeSession", { sessionId });
      case "another":
        return runCommand("resetContext", { sessionId: sourceSessionId, checkpointId });
      default:
        return undefined;
    }
  }

  protected async ask(): Promise<readonly [string, ToPage]> {
    const { server } = this.app;
    const operationId = this.#operationId;
    const details = await server.request("restoreDetails", { operationId });
    const [lineage, state] = await Promise.all([this.#lineage(details), this.#state(details)]);
    this.#details = details;
    const title = `Restored “${nameOf(details.label, details.checkpointId)}”`;
    return [title, { kind: "details", details, lineage, state }];
  }

  /** The lineage, if the branch or the source still exists. */
  async #lineage(details: RestoreDetails): Promise<Details["lineage"]> {
    const { branchAvailable, sourceAvailable, sourceSessionId } = details;
    if (!branchAvailable && !sourceAvailable) {
      return [];
    }
    const sessionId = branchAvailable ? details.sessionId : sourceSessionId;
    try {
      return (await this.app.server.request("lineage", { sessionId })).nodes;
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
      return JSON.parse((await this.app.server.request("show", sourceTurn)).text);
    } catch {
      return null; // the turn is gone from it
    }
  }
}
