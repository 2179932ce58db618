/** Runs commands and requests, and words the server's refusals. */

import * as vscode from "vscode";
import type { RequestType } from "vscode-jsonrpc";
import { LSPErrorCodes, ResponseError, WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "./client.ts";
import { REMEDIES, type RefusalWords, type Remedy, refusalWords } from "./model/refusals.ts";
import { harmless } from "./model/text.ts";

/**
 * Run a command and show a refusal as one notification, with the buttons that mend it.
 *
 * `force` runs it in spite of the refusal, where that can be done.
 */
export async function attempt(
  work: () => Promise<void>,
  force: (() => Promise<void>) | null = null,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    void offer(error, work, force);
  }
}

async function offer(
  error: unknown,
  work: () => Promise<void>,
  force: (() => Promise<void>) | null,
): Promise<void> {
  const { sentence, remedies } = errorWords(error);
  const buttons = remedies.filter((remedy) => remedy !== "force" || force !== null);
  const labels = buttons.map((remedy) => REMEDIES[remedy].label);
  const chosen = await vscode.window.showWarningMessage(harmless(sentence), ...labels);
  const remedy = buttons.find((each) => REMEDIES[each].label === chosen);
  if (remedy === "again") {
    await attempt(work, force);
  } else if (remedy === "force" && force !== null) {
    await attempt(force);
  } else if (remedy !== undefined) {
    await remedied(remedy, error);
  }
}

/** Run the command of a remedy, on the session that the refusal names. */
export async function remedied(remedy: Remedy, error: unknown): Promise<void> {
  const { command } = REMEDIES[remedy];
  const { into, sessionId } = factsOf(error);
  const id = remedy === "goThere" ? (into ?? sessionId) : sessionId;
  if (command !== null) {
    const on = typeof id === "string" ? [{ sessionId: id }] : [];
    await vscode.commands.executeCommand(`codexCheckpoints.${command}`, ...on);
  }
}

/** Ask a question that needs a click on `button` to go on. */
export async function confirm(question: string, detail: string, button: string) {
  const modal = { modal: true, detail };
  return (await vscode.window.showWarningMessage(question, modal, button)) === button;
}

/** The same where something is lost: Enter cancels. */
export async function confirmLoss(question: string, detail: string, button: string) {
  const modal = { modal: true, detail };
  const items = [{ title: "Cancel", isCloseAffordance: true }, { title: button }];
  const chosen = await vscode.window.showWarningMessage(question, modal, ...items);
  return chosen?.title === button;
}

/** Say what was done, with a button that takes it back. */
export function showUndoable(sentence: string, undo: () => Promise<void>): void {
  void vscode.window.showInformationMessage(harmless(sentence), "Undo").then(async (chosen) => {
    if (chosen !== undefined) {
      await attempt(undo);
    }
  });
}

export function showDone(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, 3000);
}

/** The server's code for a refusal; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

function factsOf(error: unknown): Readonly<Record<string, unknown>> {
  return error instanceof ResponseError ? Object(error.data?.facts) : {};
}

/** The sentence and the buttons for an error. */
export function errorWords(error: unknown): RefusalWords {
  return error instanceof ResponseError
    ? refusalWords(codeOf(error), factsOf(error))
    : { sentence: error instanceof Error ? error.message : String(error), remedies: [] };
}

export function errorText(error: unknown): string {
  return errorWords(error).sentence;
}

let asked = 0;

/** Work that is shorter shows no progress. */
const QUIET_MS = 700;

type Tracked = { readonly workDoneToken: string | number | null };

/** Send a request with progress and a cancel button; undefined if cancelled, with nothing done. */
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
