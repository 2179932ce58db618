/** Does what a person asked for, and says in words why the server would not. */

import * as vscode from "vscode";
import type { RequestType } from "vscode-jsonrpc";
import { LSPErrorCodes, ResponseError, WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "./client.ts";
import { refusalText } from "./model/status.ts";
import { harmless } from "./model/text.ts";

/** Do it; a refusal becomes one notification, by `words` where those say more. */
export async function attempt(
  work: () => Promise<void>,
  words: (error: unknown) => string | null = () => null,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    const sentence = words(error) ?? errorText(error);
    void vscode.window.showWarningMessage(harmless(sentence));
  }
}

/** Say for a moment that something was done. */
export function showDone(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, 3000);
}

/** The server's own word for why it would not; empty where the error is not a refusal of its. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

/** A sentence for a refusal or a failure. */
export function errorText(error: unknown): string {
  if (error instanceof ResponseError) {
    const code = codeOf(error) || String(error.code);
    return refusalText(code, Object(error.data?.facts));
  }
  return error instanceof Error ? error.message : String(error);
}

let asked = 0;

/** What is done by then is done without a word. */
const QUIET_MS = 700;

/**
 * Send a request that may take a while: then a notification shows how far it is and can cancel it.
 * Undefined when it was cancelled: then nothing was done.
 */
export async function longRequest<
  P extends { readonly workDoneToken: string | number | null },
  R,
  E,
>(
  server: Server,
  title: string,
  type: RequestType<P, R, E>,
  params: Omit<P, "workDoneToken">,
): Promise<R | undefined> {
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
  const work = server.request(type, { ...params, workDoneToken } as P, stopping.token);
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
