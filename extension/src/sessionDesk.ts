/** Names a session, puts it away and back; asks where something has to be asked. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { longWork } from "./longWork.ts";
import { cut, plain } from "./model/text.ts";
import {
  ArchiveRequest,
  RenameRequest,
  type SessionSummary,
  UnarchiveRequest,
} from "./protocol.ts";
import { telling } from "./telling.ts";

/** As many as the server keeps of a name. */
const LONGEST_NAME = 160;

export class SessionDesk {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Ask for a name; an empty one takes the name back. */
  async rename(session: SessionSummary): Promise<void> {
    const name = await vscode.window.showInputBox({
      title: "Rename the Session",
      prompt: "What to call it. Leave empty to call it by its first message.",
      value: cut(plain(session.title ?? ""), LONGEST_NAME),
    });
    if (name !== undefined) {
      const { sessionId } = session;
      await telling(async () => {
        await this.#server.request(RenameRequest, { sessionId, name: name.trim() });
      });
    }
  }

  /** Put it among the archived ones. */
  async archive({ sessionId }: SessionSummary): Promise<void> {
    await telling(async () => {
      await longWork(this.#server, "Archiving the session", ({ workDoneToken, cancelled }) =>
        this.#server.request(ArchiveRequest, { sessionId, workDoneToken }, cancelled),
      );
    });
  }

  /** Put it back among the others. */
  async unarchive({ sessionId }: SessionSummary): Promise<void> {
    await telling(async () => {
      await longWork(this.#server, "Putting the session back", ({ workDoneToken, cancelled }) =>
        this.#server.request(UnarchiveRequest, { sessionId, workDoneToken }, cancelled),
      );
    });
  }
}
