/** Commands and tabs for restores. */

import * as vscode from "vscode";
import { type App, askToChoose, type Commands, showNew } from "./app.ts";
import { resume } from "./compaction.ts";
import {
  detailsState,
  type Mode,
  notice,
  type PreviewState,
  previewState,
  readOptions,
  restoreChoices,
} from "./model/restore.ts";
import { localTime } from "./model/text.ts";
import { openPanel, pagesAt } from "./panel.ts";
import { askMarker } from "./picking.ts";
import { type Restored, RestoresRequest, SessionRequest } from "./protocol.ts";
import { attempt } from "./requests.ts";
import { RestorePreview } from "./restorePreview.ts";
import { RestoreReport } from "./restoreReport.ts";

const PREVIEW = "codexCheckpoints.restorePreview";
const DETAILS = "codexCheckpoints.restoreDetails";

export interface Place {
  readonly sessionId: string;
  readonly checkpointId: string;
}

export class Restores implements vscode.Disposable {
  readonly #app: App;
  readonly #folder: vscode.Uri;
  readonly #previews = new Map<string, RestorePreview>();
  readonly #reports = new Map<string, RestoreReport>();
  readonly #subscriptions: vscode.Disposable[];

  constructor(app: App, extension: vscode.Uri) {
    this.#app = app;
    this.#folder = pagesAt(extension);
    const onReload = (type: string, open: (panel: vscode.WebviewPanel, kept: unknown) => void) =>
      vscode.window.registerWebviewPanelSerializer(type, {
        deserializeWebviewPanel: async (panel, kept: unknown) => open(panel, kept),
      });
    this.#subscriptions = [
      onReload(PREVIEW, (panel, kept) => this.#previewAgain(panel, kept)),
      onReload(DETAILS, (panel, kept) => this.#detailsAgain(panel, kept)),
    ];
  }

  /** Open the preview of a restore; without a place ask for a marker. */
  async restore(place: Place | null, mode: Mode | null = null): Promise<void> {
    await attempt(async () => {
      const chosen = place ?? (await this.#askPlace());
      if (chosen !== null) {
        this.#preview(chosen, mode);
      }
    });
  }

  /** Open the details of a restore; without an id ask for one. */
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

  async list(sessionId: string | null): Promise<void> {
    await attempt(async () => {
      const { items } = await this.#app.server.request(RestoresRequest, { sessionId });
      if (items.length === 0) {
        await vscode.window.showInformationMessage("Nothing has been restored yet.");
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
    const session = this.#app.following.current;
    if (session === null) {
      await askToChoose();
      return null;
    }
    const { sessionId } = session;
    const marker = await askMarker(this.#app.server, session, "Restore from a Marker");
    return marker === undefined ? null : { sessionId, checkpointId: marker.checkpointId };
  }

  #preview(place: Place, mode: Mode | null): void {
    const open = this.#previews.get(keyOf(place));
    if (open !== undefined) {
      open.show(mode);
      return;
    }
    const options = readOptions({ mode });
    const panel = openPanel(PREVIEW, "Restore");
    this.#previewIn(panel, { ...place, options });
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
    const outcome = {
      done: (restored: Restored) => void this.#offer(restored),
      found: (operationId: string) => void this.details(operationId),
      gone: () => this.#previews.delete(key),
    };
    const made = new RestorePreview(this.#app, this.#folder, panel, state, outcome);
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
    const { server, feed } = this.#app;
    const ways = {
      resume: (sessionId: string) => void this.#resume(sessionId),
      another: (place: Place, mode: Mode) => void this.restore(place, mode),
      gone: () => this.#reports.delete(operationId),
    };
    const made = new RestoreReport(server, feed, this.#folder, panel, operationId, ways);
    this.#reports.set(operationId, made);
  }

  async #offer(done: Restored): Promise<void> {
    const [resume, details] = ["Resume in Terminal", "Details"];
    if (done.sessionId !== null) {
      void attempt(() => showNew(this.#app, done.sessionId ?? ""));
    }
    const chosen = await vscode.window.showInformationMessage(notice(done), resume, details);
    if (chosen === details) {
      await this.details(done.operationId);
    } else if (chosen === resume && done.sessionId !== null) {
      await this.#resume(done.sessionId);
    }
  }

  #resume(sessionId: string): Promise<void> {
    return attempt(async () => {
      const { summary } = await this.#app.server.request(SessionRequest, { sessionId });
      await resume(this.#app, summary);
    });
  }
}

export function restoreCommands(restores: Restores): Commands {
  return {
    restoreMarker: (on?: Called) => restores.restore(placeOf(on)),
    continueWithContext: (on?: Called) => restores.restore(placeOf(on), "soft"),
    resetContext: (on?: Called) => restores.restore(placeOf(on), "hard"),
    showRestoreDetails: (on?: Called) =>
      restores.details(idIn(on, "operationId") ?? idIn(on?.branch, "operationId")),
    showRestores: (on?: Called) => restores.list(idIn(on?.session, "sessionId")),
  };
}

/** The argument of these commands: ids, or a row that has them. */
interface Called {
  readonly session?: unknown;
  readonly marker?: unknown;
  readonly branch?: unknown;
}

function placeOf(on: Called | undefined): Place | null {
  const sessionId = idIn(on, "sessionId") ?? idIn(on?.session, "sessionId");
  const checkpointId = idIn(on, "checkpointId") ?? idIn(on?.marker, "checkpointId");
  return sessionId === null || checkpointId === null ? null : { sessionId, checkpointId };
}

function idIn(some: unknown, name: string): string | null {
  const value = (Object(some) as Record<string, unknown>)[name];
  return typeof value === "string" ? value : null;
}

function keyOf({ sessionId, checkpointId }: Place): string {
  return `${sessionId} ${checkpointId}`;
}
