/** Pins files, and lines of them, to the session in view: every state pack of it offers them. */

import * as vscode from "vscode";
import { inView } from "./chosenSession.ts";
import type { Server } from "./client.ts";
import type { Following } from "./following.ts";
import type { CheckpointNode } from "./model/node.ts";
import { uriOfFile } from "./model/payloads.ts";
import { pathOf } from "./model/pins.ts";
import { type Pin, PinRequest, type SessionSummary, UnpinRequest } from "./protocol.ts";
import { tellDone } from "./telling.ts";
import { pathForSessions } from "./workspace.ts";

export class PinDesk {
  readonly #server: Server;
  readonly #following: Following;

  constructor(server: Server, following: Following) {
    this.#server = server;
    this.#following = following;
  }

  /** Pin the file of a row, of the explorer, or of the active editor. */
  pin(target: CheckpointNode | vscode.Uri | undefined): Promise<void> {
    return inView(this.#following, async (session) => {
      const path = await pathIn(session, target ?? vscode.window.activeTextEditor?.document.uri);
      if (path !== null) {
        await this.#pin(session, path);
      }
    });
  }

  /** Pin the lines that are selected in the active editor. */
  pinLines(): Promise<void> {
    return inView(this.#following, async (session) => {
      const editor = vscode.window.activeTextEditor;
      if (editor === undefined) {
        return;
      }
      const { start, end } = editor.selection;
      const path = await pathIn(session, editor.document.uri);
      if (path === null) {
        return;
      }
      // A selection of whole lines ends before the first character of the next one.
      const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
      await this.#pin(session, pathOf({ uri: path, start: start.line + 1, end: last }));
    });
  }

  /** Take the pin of a row away. */
  unpin(pin: Pin | null): Promise<void> {
    return inView(this.#following, async ({ sessionId }) => {
      if (pin !== null) {
        await this.#server.request(UnpinRequest, { sessionId, path: pathOf(pin) });
        tellDone("The pin is taken away");
      }
    });
  }

  async #pin({ sessionId }: SessionSummary, path: string): Promise<void> {
    await this.#server.request(PinRequest, { sessionId, path });
    tellDone("Pinned to the session in view");
  }
}

/** How the checkpoint of a session names what is meant; null for what is no file. */
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
