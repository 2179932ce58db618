/** Runs commands and requests, and words the server's refusals. */

import * as vscode from "vscode";
import type { RequestType } from "vscode-jsonrpc";
import { LSPErrorCodes, ResponseError, WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "./client.ts";
import { refusalText } from "./model/status.ts";
import { harmless } from "./model/text.ts";

/** Run a command and show a refusal as one notification; `words` may give a better sentence. */
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

/** Ask a question that needs a click on `button` to go on. */
export async function confirm(question: string, detail: string, button: string) {
  const modal = { modal: true, detail };
  return (await vscode.window.showWarningMessage(question, modal, button)) === button;
}

export function showDone(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, 3000);
}

/** The server's code for a refusal; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

export function errorText(error: unknown): string {
  if (error instanceof ResponseError) {
    const code = codeOf(error) || String(error.code);
    return refusalText(code, Object(error.data?.facts));
  }
  return error instanceof Error ? error.message : String(error);
}

let asked = 0;

/** Work that is shorter shows no progress. */
const QUIET_MS = 700;

/** Send a request with progress and a cancel button; undefined if cancelled, with nothing done. */
type Tracked = { readonly workDoneToken: string | number | null };

export async function longRequest<P extends Tracked, R, E>(
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

/** Whether work ends, well or not, within the quiet time. */
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

function isCancellation(error: unknown): boolean {
  return (
    error instanceof vscode.CancellationError ||
    (error instanceof ResponseError &&
      (error.code === LSPErrorCodes.RequestCancelled || error.data?.code === "cancelled"))
  );
}
