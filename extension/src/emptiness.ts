/** Why the tree of sessions is empty: the welcome texts in package.json go by these words. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { sessionsParams } from "./model/listing.ts";
import { Newest } from "./model/newest.ts";
import type { ServerState } from "./model/status.ts";
import { DoctorRequest, SessionsRequest } from "./protocol.ts";

/** What is known about an empty tree. */
export interface Empty {
  readonly isFiltered: boolean;
  readonly hasFolder: boolean;
}

export class Emptiness {
  readonly #server: Server;
  readonly #told = new Newest();

  constructor(server: Server) {
    this.#server = server;
  }

  /** Say how the server is: it is the first reason for an empty tree. */
  server(state: ServerState): void {
    setContext("state", state.kind);
  }

  /** Say why the tree is empty; null when it is not. */
  async tell(empty: Empty | null): Promise<void> {
    const isNewest = this.#told.begin();
    const reason = empty === null ? "" : await this.#reason(empty);
    if (isNewest()) {
      setContext("empty", reason);
    }
  }

  async #reason({ isFiltered, hasFolder }: Empty): Promise<string> {
    if (isFiltered) {
      return "filtered";
    }
    if (hasFolder) {
      const any = await this.#server.request(SessionsRequest, sessionsParams({ limit: 1 }));
      if (any.items.length > 0) {
        return "notHere";
      }
    }
    const report = await this.#server.request(DoctorRequest, {});
    const missing = ["codex_home_missing", "sessions_folder_missing"];
    return report.findings.some(({ code }) => missing.includes(code)) ? "noFolder" : "noSessions";
  }
}

/** Set a context key of ours, for `when` clauses. */
export function setContext(name: string, value: unknown): void {
  void vscode.commands.executeCommand("setContext", `codexCheckpoints.${name}`, value);
}
