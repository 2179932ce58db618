/** Commands for restores, and their tabs. */

import * as vscode from "vscode";
import type { SessionSummary } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import { type App, askToChoose, type Commands } from "../common/app.ts";
import { inform } from "../common/messages.ts";
import { localTime } from "../common/model/text.ts";
import { Tabs } from "../common/panel.ts";
import { askMarker } from "../common/pickers.ts";
import { type Mode, restoreChoices } from "./model/preview.ts";
import { RestorePreview } from "./preview.ts";

interface Place {
  readonly sessionId: string;
  readonly checkpointId: string;
}

/** The restore previews, one per marker. */
export type RestorePreviews = Tabs<keyof Place, RestorePreview>;

export function restorePreviews(app: App, extension: vscode.Uri): RestorePreviews {
  return new Tabs(app, extension, "preview", ["sessionId", "checkpointId"], RestorePreview);
}

export function restoreCommands(app: App, previews: RestorePreviews): Commands {
  const details = (name: string) => {
    app.reports.open("restore", { name });
  };
  const list = (sessionId: string | null) => attempt(() => listRestores(app, sessionId, details));
  /** Open a restore preview; without a place, ask for a marker of the session. */
  const restore = (mode: Mode | null) => (on?: Called) =>
    attempt(async () => {
      const place = placeOf(on) ?? (await askPlace(app, on?.session));
      if (place !== null) {
        previews.open("Restore", place).changeMode(mode);
      }
    });
  return {
    restoreMarker: restore(null),
    continueWithContext: restore("soft"),
    resetContext: restore("hard"),
    showRestoreDetails: (on?: Called) => {
      const operationId = on?.operationId ?? on?.branch?.operationId ?? null;
      return operationId === null ? list(null) : details(operationId);
    },
    showRestores: (on?: Called) => list(on?.session?.sessionId ?? null),
  };
}

async function listRestores(
  { server }: App,
  sessionId: string | null,
  open: (operationId: string) => void,
): Promise<void> {
  const { items } = await server.request("restores", { sessionId });
  if (items.length === 0) {
    await inform("Nothing has been restored yet.");
    return;
  }
  const time = (stamp: string) => localTime(stamp, vscode.env.language);
  const placeHolder = "Which restore? The newest comes first.";
  const options = { title: "Restores", placeHolder, matchOnDetail: true };
  const chosen = await vscode.window.showQuickPick(restoreChoices(items, time), options);
  if (chosen !== undefined) {
    open(chosen.operationId);
  }
}

async function askPlace(
  { server, following }: App,
  session: SessionSummary | null = following.current,
): Promise<Place | null> {
  if (session === null) {
    await askToChoose();
    return null;
  }
  const { sessionId } = session;
  const marker = await askMarker(server, session, "Restore from a Marker");
  return marker === undefined ? null : { sessionId, checkpointId: marker.checkpointId };
}

/** The argument of these commands: ids, or a row with ids. */
interface Called extends Partial<Place> {
  readonly operationId?: string;
  readonly session?: SessionSummary;
  readonly marker?: { readonly checkpointId: string };
  readonly branch?: { readonly operationId: string | null };
}

function placeOf(on?: Called): Place | null {
  const sessionId = on?.sessionId ?? on?.session?.sessionId;
  const checkpointId = on?.checkpointId ?? on?.marker?.checkpointId;
  return sessionId && checkpointId ? { sessionId, checkpointId } : null;
}
