/** Connects Codex with us and takes that back, after a person has seen what is written. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { ConnectionTree } from "./connectionTree.ts";
import type { Documents } from "./documents.ts";
import { changesText } from "./model/connection.ts";
import { type ConnectReport, ConnectRequest } from "./protocol.ts";
import { telling } from "./telling.ts";
import { workspacePaths } from "./workspace.ts";

const CONNECTED = "codexCheckpoints.connected";

type Change = "connect" | "remove";

export class ConnectionDesk {
  readonly #server: Server;
  readonly #documents: Documents;
  readonly #tree: ConnectionTree;

  constructor(server: Server, documents: Documents, tree: ConnectionTree) {
    this.#server = server;
    this.#documents = documents;
    this.#tree = tree;
  }

  /** Show what is added to Codex's configuration, ask, and add it. */
  connect(): Promise<void> {
    return this.#change("connect");
  }

  /** Show what is taken out of Codex's configuration, ask, and take it out. */
  disconnect(): Promise<void> {
    return this.#change("remove");
  }

  /** Say once that Codex calls what is gone: an update of this extension moves it. */
  async tellWhenLost(): Promise<void> {
    try {
      const { doors } = await this.#ask("connect", true);
      if (!doors.some(({ problem }) => problem === "program_missing")) {
        return;
      }
    } catch (error) {
      // What is wrong with Codex's configuration is told where a person asks for it.
      this.#server.log.info(`connection: ${error instanceof Error ? error.message : error}`);
      return;
    }
    const again = "Connect Again…";
    const chosen = await vscode.window.showWarningMessage(
      "Codex calls Codex Checkpoints where it no longer is, so it is not given checkpoints back. Connect it again.",
      again,
    );
    if (chosen === again) {
      await this.connect();
    }
  }

  /** Say how hooks come to be trusted: only Codex asks for that, and only its user answers. */
  async explainTrust(): Promise<void> {
    const start = "Start Codex in Terminal";
    const chosen = await vscode.window.showInformationMessage(
      "Codex calls a hook only when you trust it. Start Codex: it shows new hooks and asks; /hooks shows them later. The Connection view shows when it is done.",
      start,
    );
    if (chosen === start) {
      const terminal = vscode.window.createTerminal({ name: "Codex" });
      terminal.show();
      terminal.sendText("codex");
    }
  }

  /** Say what an older Codex lacks; how it is updated depends on how it was installed. */
  async explainUpdate(): Promise<void> {
    await vscode.window.showInformationMessage(
      "This version of Codex has no hooks, so it cannot be given the checkpoint back. Update Codex in the way you installed it; the memory tools work without.",
    );
  }

  async #change(change: Change): Promise<void> {
    await telling(async () => {
      const preview = await this.#ask(change, true);
      if (preview.changes.length === 0) {
        await vscode.window.showInformationMessage(nothingToDo(change));
      } else if (await this.#isAgreed(change, preview)) {
        const done = await this.#ask(change, false);
        this.#tellDone(change, done);
      }
    });
    this.#tree.refresh();
  }

  async #ask(change: Change, dryRun: boolean): Promise<ConnectReport> {
    const [cwd] = vscode.workspace.isTrusted ? await workspacePaths() : [];
    const wish = { dryRun, remove: change === "remove", status: false, cwd: cwd ?? null };
    const report = await this.#server.request(ConnectRequest, wish);
    // The walkthrough ticks its step off when it is done, and not when somebody only looked.
    const isConnected = report.doors.every(({ configured }) => configured);
    void vscode.commands.executeCommand("setContext", CONNECTED, isConnected);
    return report;
  }

  /** The changes lie open behind the question: it is about somebody else's files. */
  async #isAgreed(change: Change, preview: ConnectReport): Promise<boolean> {
    const name = change === "connect" ? "Connect Codex" : "Disconnect Codex";
    await this.#documents.openText(name, changesText(preview));
    const yes = change === "connect" ? "Connect" : "Disconnect";
    const question =
      change === "connect"
        ? "Let Codex call Codex Checkpoints?"
        : "Take Codex Checkpoints out of Codex's configuration?";
    const detail =
      "The document shows every line that changes. The rest of each file stays as it is, and a copy of it is kept beside it.";
    const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, yes);
    return answer === yes;
  }

  #tellDone(change: Change, done: ConnectReport): void {
    this.#server.log.info(`${change}: ${done.changes.length} files`);
    const [hook] = done.doors;
    if (change === "connect" && hook?.trusted !== true) {
      void this.explainTrust();
    } else {
      vscode.window.setStatusBarMessage("Codex's configuration is changed", 4000);
    }
  }
}

function nothingToDo(change: Change): string {
  return change === "connect"
    ? "Codex is connected already: nothing is to be written."
    : "Nothing of Codex Checkpoints stands in Codex's configuration.";
}
