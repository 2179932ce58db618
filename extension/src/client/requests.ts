/** Runs commands and requests, and words the server's refusals. */

import * as vscode from "vscode";
import { LSPErrorCodes, ResponseError, WorkDoneProgress } from "vscode-languageclient/node";
import { inform, runCommand, warn } from "../common/messages.ts";
import { harmless } from "../common/model/text.ts";
import type { Answer, Asked, Method, Server } from "./client.ts";
import {
  FAILED,
  REMEDIES,
  type RefusalWords,
  type Remedy,
  refusalWords,
} from "./model/refusals.ts";

/** Run a command; show a refusal as one notification, with buttons for its remedies. */
export async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { sentence, remedies } = errorWords(error);
    const mend = (remedy: Remedy) => (remedy === "again" ? attempt(work) : remedied(remedy, error));
    void warn(
      harmless(sentence),
      Object.fromEntries(remedies.map((remedy) => [REMEDIES[remedy].label, () => mend(remedy)])),
    );
  }
}

/** Run a remedy's command on the session named in the refusal. */
export async function remedied(remedy: Remedy, error: unknown): Promise<void> {
  const { command } = REMEDIES[remedy];
  const { into, sessionId } = factsOf(error);
  const id = remedy === "goThere" ? (into ?? sessionId) : sessionId;
  if (command !== null) {
    await runCommand(command, ...(typeof id === "string" ? [{ sessionId: id }] : []));
  }
}

/** Report a finished action, with an undo button. */
export function showUndoable(sentence: string, undo: () => Promise<void>): void {
  void inform(harmless(sentence), { Undo: () => attempt(undo) });
}

/** The server's code for a refusal; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

function factsOf(error: unknown): Readonly<Record<string, unknown>> {
  return error instanceof ResponseError ? Object(error.data?.facts) : {};
}

/** The sentence and the buttons for an error. */
export function errorWords(error: unknown, canForce = false): RefusalWords {
  if (error instanceof ResponseError) {
    const code = codeOf(error);
    return code === "" || code === "internal"
      ? FAILED
      : refusalWords(code, error.message, factsOf(error), canForce);
  }
  return { sentence: error instanceof Error ? error.message : String(error), remedies: [] };
}

export function errorText(error: unknown): string {
  return errorWords(error).sentence;
}

let asked = 0;

/** Delay before a progress notification appears; a short request would only make it flash. */
const QUICK_MS = 400;

/**
 * Send a request; undefined if cancelled, with nothing done.
 *
 * A longer request shows its progress with a Cancel button; `token` cancels it too.
 */
export async function longRequest<M extends Method>(
  server: Server,
  title: string,
  method: M,
  params: Omit<Asked<M>, "workDoneToken">,
  token?: vscode.CancellationToken,
): Promise<Answer<M> | undefined> {
  asked += 1;
  const workDoneToken = `work-${asked}`;
  const cancel = new vscode.CancellationTokenSource();
  const withdrawn = token?.onCancellationRequested(() => cancel.cancel());
  let percent = 0;
  let report = () => {};
  const listening = server.client?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
    if (value.kind === "report" && value.percentage !== undefined) {
      percent = value.percentage;
      report();
    }
  });
  const answer = server.request(method, { ...params, workDoneToken } as Asked<M>, cancel.token);
  try {
    if (!(await settlesWithin(QUICK_MS, answer))) {
      const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
      await vscode.window.withProgress(options, async (progress, cancelled) => {
        cancelled.onCancellationRequested(() => cancel.cancel());
        let shown = 0;
        report = () => {
          progress.report({ increment: percent - shown });
          shown = percent;
        };
        report();
        await settled(answer);
      });
    }
    return await answer;
  } catch (error) {
    if (cancel.token.isCancellationRequested && isCancellation(error)) {
      return undefined;
    }
    throw error;
  } finally {
    listening?.dispose();
    withdrawn?.dispose();
    cancel.dispose();
  }
}

async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work]);
}

/** Check whether work settles within some milliseconds. */
async function settlesWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const isSettled = await Promise.race([settled(work).then(() => true), late]);
  clearTimeout(timer);
  return isSettled;
}

function isCancellation(error: unknown): boolean {
  return (
    error instanceof vscode.CancellationError ||
    (error instanceof ResponseError &&
      (error.code === LSPErrorCodes.RequestCancelled || error.data?.code === "cancelled"))
  );
}
