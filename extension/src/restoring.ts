/** Restores for a person: choose a marker, look at what would come, go on, look back at any time. */

import * as vscode from "vscode";
import type { ChangeFeed } from "./changes.ts";
import { tellNoSession } from "./chosenSession.ts";
import type { Server } from "./client.ts";
import type { Following } from "./following.ts";
import { detailsState, type PreviewState, previewState } from "./model/pages.ts";
import { type Mode, notice, restoreChoices } from "./model/restore.ts";
import { localTime } from "./model/time.ts";
import { openPanel, pagesAt } from "./panel.ts";
import { askMarker } from "./picking.ts";
import { type Restored, RestoresRequest, SessionRequest } from "./protocol.ts";
import { RestorePreview } from "./restorePreview.ts";
import { RestoreReport } from "./restoreReport.ts";
import type { ResumeDesk } from "./resuming.ts";
import { telling } from "./telling.ts";

/** The kinds of tabs, under which the editor keeps them over a reload. */
const PREVIEW = "codexCheckpoints.restorePreview";
const DETAILS = "codexCheckpoints.restoreDetails";

/** A marker by its session. */
export interface Place {
  readonly sessionId: string;
  readonly checkpointId: string;
}

/** Whom restores work with. */
interface Neighbours {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly following: Following;
  readonly resuming: ResumeDesk;
}

export class RestoreDesk implements vscode.Disposable {
  readonly #house: Neighbours;
  readonly #folder: vscode.Uri;
  readonly #previews = new Map<string, RestorePreview>();
  readonly #reports = new Map<string, RestoreReport>();
  readonly #subscriptions: vscode.Disposable[];

  constructor(house: Neighbours, extension: vscode.Uri) {
    this.#house = house;
    this.#folder = pagesAt(extension);
    this.#subscriptions = [
      vscode.window.registerWebviewPanelSerializer(PREVIEW, {
        deserializeWebviewPanel: async (panel, kept: unknown) => this.#previewAgain(panel, kept),
      }),
      vscode.window.registerWebviewPanelSerializer(DETAILS, {
        deserializeWebviewPanel: async (panel, kept: unknown) => this.#detailsAgain(panel, kept),
      }),
    ];
  }

  /** Open the preview of a restore; without a place, of a marker to be chosen. */
  async restore(place: Place | null, mode: Mode | null = null): Promise<void> {
    await telling(async () => {
      const chosen = place ?? (await this.#askPlace());
      if (chosen !== null) {
        this.#preview(chosen, mode);
      }
    });
  }

  /** Open the details of a restore; without one, of a restore to be chosen. */
  async details(operationId: string | null): Promise<void> {
    if (operationId === null) {
      await this.list(null);
      return;
    }
    const open = this.#reports.get(operationId);
    if (open !== undefined) {
      open.show();
      return;
    }
    this.#report(openPanel(DETAILS, "Restore"), operationId);
  }

  /** Choose among the restores of a session, or all. */
  async list(sessionId: string | null): Promise<void> {
    await telling(async () => {
      const { items } = await this.#house.server.request(RestoresRequest, { sessionId });
      if (items.length === 0) {
        await vscode.window.showInformationMessage("Nothing was restored yet.");
        return;
      }
      const time = (stamp: string) => localTime(stamp, vscode.env.language);
      const choices = restoreChoices(items, time);
      const placeHolder = "Which restore? The newest comes first.";
      const options = { title: "Restores", placeHolder, matchOnDetail: true };
      const chosen = await vscode.window.showQuickPick(choices, options);
      if (chosen !== undefined) {
        await this.details(chosen.operationId);
      }
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  async #askPlace(): Promise<Place | null> {
    const session = this.#house.following.current;
    if (session === null) {
      await tellNoSession();
      return null;
    }
    const { sessionId } = session;
    const marker = await askMarker(this.#house.server, session, "Restore from a Marker");
    return marker === undefined ? null : { sessionId, checkpointId: marker.checkpointId };
  }

  #preview(place: Place, mode: Mode | null): void {
    const open = this.#previews.get(keyOf(place));
    if (open !== undefined) {
      open.show(mode);
      return;
    }
    const wish = { mode: mode ?? "soft", budget: null, window: 0, reason: "" } as const;
    const panel = openPanel(PREVIEW, "Restore");
    this.#previewIn(panel, { ...place, wish });
  }

  #previewAgain(panel: vscode.WebviewPanel, kept: unknown): void {
    const state = previewState(kept);
    if (state === null || this.#previews.has(keyOf(state))) {
      panel.dispose();
    } else {
      this.#previewIn(panel, state);
    }
  }

  #previewIn(panel: vscode.WebviewPanel, state: PreviewState): void {
    const key = keyOf(state);
    const { server, feed } = this.#house;
    const outcome = {
      done: (restored: Restored) => void this.#offer(restored),
      found: (operationId: string) => void this.details(operationId),
      gone: () => this.#previews.delete(key),
    };
    const made = new RestorePreview(server, feed, this.#folder, panel, state, outcome);
    this.#previews.set(key, made);
  }

  #detailsAgain(panel: vscode.WebviewPanel, kept: unknown): void {
    const state = detailsState(kept);
    if (state === null || this.#reports.has(state.operationId)) {
      panel.dispose();
    } else {
      this.#report(panel, state.operationId);
    }
  }

  #report(panel: vscode.WebviewPanel, operationId: string): void {
    const { server, feed } = this.#house;
    const ways = {
      resume: (sessionId: string) => void this.#resume(sessionId),
      another: (place: Place, mode: Mode) => void this.restore(place, mode),
      gone: () => this.#reports.delete(operationId),
    };
    const made = new RestoreReport(server, feed, this.#folder, panel, operationId, ways);
    this.#reports.set(operationId, made);
  }

  /** One quiet notice, with the ways on. */
  async #offer(done: Restored): Promise<void> {
    const [details, resume] = ["Details", "Resume in Terminal"];
    const chosen = await vscode.window.showInformationMessage(notice(done), details, resume);
    if (chosen === details) {
      await this.details(done.operationId);
    } else if (chosen === resume && done.sessionId !== null) {
      await this.#resume(done.sessionId);
    }
  }

  #resume(sessionId: string): Promise<void> {
    return telling(async () => {
      const { summary } = await this.#house.server.request(SessionRequest, { sessionId });
      await this.#house.resuming.resume(summary);
    });
  }
}

function keyOf({ sessionId, checkpointId }: Place): string {
  return `${sessionId} ${checkpointId}`;
}
