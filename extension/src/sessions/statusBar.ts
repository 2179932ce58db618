/** The status bar item: the context meter of the session in view, or the server's problem. */

import * as vscode from "vscode";
import { WorkDoneProgress } from "vscode-languageclient/node";
import type { Server } from "../client/client.ts";
import { statusOf } from "../client/model/status.ts";
import { serverCommand } from "../client/settings.ts";
import { fail, runCommand } from "../common/messages.ts";
import { sessionsParams } from "./model/rows.ts";
import type { Following } from "./sessionInView.ts";
import { SESSIONS_VIEW } from "./tree.ts";

export class StatusBar implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;
  readonly #subscriptions: vscode.Disposable[];

  constructor(server: Server, following: Following) {
    const { Left } = vscode.StatusBarAlignment;
    this.#item = vscode.window.createStatusBarItem("codexCheckpoints.status", Left, 0);
    this.#item.name = "Codex Checkpoints";
    const show = () => this.#show(server, following);
    this.#subscriptions = [server.onDidChangeState(show), following.onDidChange(show)];
    show();
    this.#item.show();
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#item).dispose();
  }

  #show(server: Server, following: Following): void {
    const status = statusOf(server.state, following.current);
    this.#item.text = status.text;
    this.#item.tooltip = status.tooltip;
    this.#item.accessibilityInformation = { label: status.spoken };
    this.#item.backgroundColor =
      status.alert === "none"
        ? undefined
        : new vscode.ThemeColor(`statusBarItem.${status.alert}Background`);
    const clicks = { restart: "restart", menu: "showActions", open: "checkpoint.focus" };
    this.#item.command = `codexCheckpoints.${clicks[status.click]}`;
  }
}

/** Show an error with buttons when the server cannot be started. */
export function reportTrouble(server: Server): vscode.Disposable {
  return server.onDidChangeState(async (state) => {
    if (state.kind !== "noPython" && state.kind !== "failed") {
      return;
    }
    const again = { "Start Again": () => runCommand("restart") };
    const named =
      serverCommand() === null ? again : { "Open Settings": () => runCommand("openSettings") };
    const choose = { "Choose Python Interpreter": () => runCommand("choosePython") };
    await fail(state.reason, {
      ...(state.kind === "noPython" ? choose : named),
      "Show Log": () => runCommand("showLog"),
    });
  });
}

/** Let the server read the session folders, and report its progress. */
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
      server.request("sessions", sessionsParams({ limit: 1, workDoneToken })),
    );
    server.log.info(`index: current after ${Date.now() - began} ms`);
    if (server.client === client) {
      server.become({ kind: "ready" });
    }
  } catch (error) {
    server.log.error(`index: ${error instanceof Error ? error.message : error}`);
    // If the server exited, its exit was already reported.
    if (server.client === client) {
      server.become({ kind: "failed", reason: "The sessions could not be read." });
    }
  } finally {
    listening.dispose();
  }
}
