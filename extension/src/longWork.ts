/** Work of the server that takes a while: shown as it goes on, and stopped when a person says so. */

import * as vscode from "vscode";
import { LSPErrorCodes, ResponseError, WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "./client.ts";

/** What a long request is sent with. */
export interface Asking {
  /** Names the work to the server, which tells how far it is. */
  readonly workDoneToken: string;
  readonly cancelled: vscode.CancellationToken;
}

let asked = 0;

/** What is done by then is done without a word. */
const QUIET_MS = 700;

/**
 * Run a request; where it takes a while, with a notification that tells how far it is and can
 * cancel it.  Undefined when it was cancelled: then nothing was done.
 */
export async function longWork<T>(
  server: Server,
  title: string,
  run: (asking: Asking) => Promise<T>,
): Promise<T | undefined> {
  asked += 1;
  const workDoneToken = `work-${asked}`;
  const stopping = new vscode.CancellationTokenSource();
  let [reached, shown] = [0, 0];
  let show = () => {};
  const listening = server.client?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
    if (value.kind === "report" && value.percentage !== undefined) {
      reached = value.percentage;
      show();
    }
  });
  const work = run({ workDoneToken, cancelled: stopping.token });
  try {
    if (!(await endsSoon(work))) {
      const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
      await vscode.window.withProgress(options, async (progress, cancelled) => {
        cancelled.onCancellationRequested(() => stopping.cancel());
        show = () => {
          if (reached > shown) {
            progress.report({ increment: reached - shown });
            shown = reached;
          }
        };
        show();
        await work;
      });
    }
    return await work;
  } catch (error) {
    if (stopping.token.isCancellationRequested && isCancellation(error)) {
      return undefined;
    }
    throw error;
  } finally {
    listening?.dispose();
    stopping.dispose();
  }
}

/** Whether work has ended, well or not, before anybody needs to be told of it. */
async function endsSoon(work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), QUIET_MS);
  });
  const ended = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the server stopped because it was asked to. */
function isCancellation(error: unknown): boolean {
  return (
    error instanceof vscode.CancellationError ||
    (error instanceof ResponseError &&
      (error.code === LSPErrorCodes.RequestCancelled || error.data?.code === "cancelled"))
  );
}
