/** The item in the status bar: the context meter of the running session, or what is wrong. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Following } from "./following.ts";
import { statusOf } from "./model/status.ts";

export class StatusBar implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;
  readonly #subscriptions: vscode.Disposable[];

  constructor(server: Server, following: Following) {
    this.#item = vscode.window.createStatusBarItem(
      "codexCheckpoints.status",
      vscode.StatusBarAlignment.Left,
      0,
    );
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
    const status = statusOf(server.state, following.running);
    this.#item.text = status.text;
    this.#item.tooltip = status.tooltip;
    this.#item.accessibilityInformation = { label: status.spoken };
    this.#item.backgroundColor =
      status.alert === "none"
        ? undefined
        : new vscode.ThemeColor(`statusBarItem.${status.alert}Background`);
    this.#item.command =
      status.click === "restart" ? "codexCheckpoints.restart" : "codexCheckpoints.checkpoint.focus";
  }
}
