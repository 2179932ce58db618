/** The first index, with the editor's progress while it lasts. */

import * as vscode from "vscode";
import { WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "./client.ts";
import { sessionsParams } from "./model/listing.ts";
import { SessionsRequest } from "./protocol.ts";
import { SESSIONS_VIEW } from "./sessionTree.ts";

/** Have the server read the session folders; afterwards it is ready. */
export async function firstIndex(server: Server): Promise<void> {
  const client = server.client;
  if (client === null) {
    return;
  }
  const workDoneToken = `index-${Date.now()}`;
  const listening = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
    if (server.state.kind === "indexing" && value.kind !== "end") {
      server.become({ kind: "indexing", percent: value.percentage ?? null });
    }
  });
  const location = { viewId: SESSIONS_VIEW };
  const began = Date.now();
  try {
    await vscode.window.withProgress({ location }, () =>
      server.request(SessionsRequest, sessionsParams({ limit: 1, workDoneToken })),
    );
    server.log.info(`index: current after ${Date.now() - began} ms`);
    if (server.client === client) {
      server.become({ kind: "ready" });
    }
  } catch (error) {
    server.log.error(`index: ${error instanceof Error ? error.message : error}`);
    // A server that is gone has said so already.
    if (server.client === client) {
      server.become({ kind: "failed", reason: "The sessions could not be read." });
    }
  } finally {
    listening.dispose();
  }
}
