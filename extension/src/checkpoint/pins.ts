/** Commands that pin content for every digest and state pack of the session. */

import * as vscode from "vscode";
import type { Pin, SessionSummary } from "../client/protocol.ts";
import { showUndoable } from "../client/requests.ts";
import { pathForSessions } from "../client/settings.ts";
import { type App, type Commands, inView } from "../common/app.ts";
import { showDone } from "../common/messages.ts";
import { askText } from "../notes/commands.ts";
import { uriOfFile } from "../notes/model/payloads.ts";
import { type CheckpointNode, NO_PIN, pathOf } from "./model/rows.ts";

export function pinCommands(app: App): Commands {
  const pin = async ({ sessionId }: SessionSummary, some: Partial<Pin>) => {
    await app.server.request("pin", { sessionId, ...named({ ...NO_PIN, ...some }) });
    showDone("Pinned to this session");
  };
  return {
    /** The file of a row, of the explorer, or of the active editor. */
    pinFile: (target?: CheckpointNode | vscode.Uri) =>
      inView(app, async (session) => {
        const meant = target ?? vscode.window.activeTextEditor?.document.uri;
        const uri = await pathIn(session, meant);
        if (uri !== null) {
          await pin(session, { uri });
        }
      }),
    /** The lines that are selected in the active editor. */
    pinLines: () =>
      inView(app, async (session) => {
        const editor = vscode.window.activeTextEditor;
        const uri = editor && (await pathIn(session, editor.document.uri));
        if (editor && uri) {
          const { start, end } = editor.selection;
          // A selection of whole lines ends before the first character of the next one.
          const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
          await pin(session, { uri, start: start.line + 1, end: last });
        }
      }),
    pinText: () =>
      inView(app, async (session) => {
        const prompt = "Every digest of the session will quote it. Passwords and keys are refused.";
        const text = await askText("Pin Text to Session", prompt, "");
        if (text) {
          await pin(session, { text });
        }
      }),
    pinNote: (node?: CheckpointNode) =>
      inView(app, async (session) => {
        if (node?.note) {
          await pin(session, { note: node.note.id });
        }
      }),
    unpinFile: (node?: CheckpointNode) =>
      inView(app, async ({ sessionId }) => {
        if (node?.pin) {
          const pinned = { sessionId, ...named(node.pin) };
          await app.server.request("unpin", pinned);
          showUndoable("Unpinned.", async () => void (await app.server.request("pin", pinned)));
        }
      }),
  };
}

/** Return the fields that identify a pin in a request. */
function named(pin: Pin) {
  const { message, note, text } = pin;
  return { path: pathOf(pin), message, note, text };
}

/** Return a file's name in a session's checkpoint; null if the target is not a file. */
async function pathIn(
  session: SessionSummary,
  target: CheckpointNode | vscode.Uri | undefined,
): Promise<string | null> {
  if (target instanceof vscode.Uri) {
    return target.scheme === "file" ? uriOfFile(session.cwd, await pathForSessions(target)) : null;
  }
  const action = target?.action;
  return action?.kind === "open" || action?.kind === "compare" ? action.uri : null;
}
