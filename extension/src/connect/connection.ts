/** Connects and disconnects Codex, after the user has seen the changes. */

import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { ConnectReport } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import { openSettings } from "../client/settings.ts";
import type { App, Commands } from "../common/app.ts";
import { inform, warn } from "../common/messages.ts";
import { Tree, treeItem } from "../common/rows.ts";
import { openCodex } from "../common/terminal.ts";
import { type ConnectionNode, connectionNodes } from "./model/rows.ts";

const CONNECTED = "codexCheckpoints.connected";

/** The message if there is nothing to write. */
const NOTHING = {
  connect: "Codex is connected already.",
  remove: "Codex is not connected.",
} as const;

type Change = keyof typeof NOTHING;

export function connectionCommands(app: App, tree: ConnectionTree): Commands {
  return {
    connect: () => makeChange(app, tree, "connect"),
    disconnect: () => makeChange(app, tree, "remove"),
    explainTrust: () => explainTrust(),
    explainUpdate: () => explainUpdate(),
    chooseHome: () => openSettings("@id:codexCheckpoints.codexHome"),
    refreshConnection: () => tree.refresh(),
  };
}

/** Warn if Codex is configured to run a missing program, for example after an update moved it. */
export async function warnWhenLost(app: App, tree: ConnectionTree): Promise<void> {
  try {
    const { doors } = await ask(app, "connect", true);
    if (!doors.some(({ problem }) => problem === "program_missing")) {
      return;
    }
  } catch (error) {
    // The Connection view shows problems of Codex's configuration.
    app.server.log.info(`connection: ${error instanceof Error ? error.message : error}`);
    return;
  }
  await warn(
    "Codex looks for Codex Checkpoints where it no longer is, so it gets no checkpoints. Connect it again.",
    { "Connect Again…": () => makeChange(app, tree, "connect") },
  );
}

function explainTrust(): Promise<void> {
  return inform(
    "Codex calls a hook only when you trust it. Start Codex: it shows new hooks and asks; /hooks shows them later. The Connection view shows when it is done.",
    { "Start Codex in Terminal": () => openCodex() },
  );
}

function explainUpdate(): Promise<void> {
  return inform(
    "This version of Codex has no hooks, so it cannot get the checkpoint. Update Codex the way you installed it; the memory tools work without hooks.",
  );
}

async function makeChange(app: App, tree: ConnectionTree, change: Change): Promise<void> {
  await attempt(async () => {
    const preview = await ask(app, change, true);
    if (preview.changes.length === 0) {
      await inform(NOTHING[change]);
    } else if (await app.reports.ask(change === "remove" ? "disconnect" : "connect")) {
      const done = await ask(app, change, false);
      reportDone(app, change, done);
    }
  });
  tree.refresh();
}

async function ask({ server }: App, change: Change, dryRun: boolean): Promise<ConnectReport> {
  const report = await server.request("connect", {
    dryRun,
    remove: change === "remove",
    status: false,
  });
  // Completes the step of the walkthrough.
  const isConnected = report.doors.every(({ configured }) => configured);
  void vscode.commands.executeCommand("setContext", CONNECTED, isConnected);
  return report;
}

function reportDone({ server }: App, change: Change, done: ConnectReport): void {
  server.log.info(`${change}: ${done.changes.length} files`);
  const [hook] = done.doors;
  if (change === "connect" && hook?.trusted !== true) {
    void explainTrust();
  } else {
    vscode.window.setStatusBarMessage("Codex's configuration was changed", 4000);
  }
}

const CONNECTION_VIEW = "codexCheckpoints.connection";

/** Codex may write several times in a row. */
const WRITTEN_MS = 1_000;

const CONFIGURATION = ["config.toml", "hooks.json"];

export class ConnectionTree extends Tree<ConnectionNode> {
  #watched: { readonly codexHome: string; readonly watchers: vscode.Disposable } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(server: Server) {
    super(CONNECTION_VIEW, server);
    this.subscriptions.push(
      server.onDidChangeState(({ kind }) => kind === "ready" && this.refresh()),
    );
  }

  protected override isOld(): boolean {
    return true;
  }

  protected itemOf(node: ConnectionNode): vscode.TreeItem {
    const { None, Collapsed } = vscode.TreeItemCollapsibleState;
    const item = treeItem(node.id, node.row, node.children.length === 0 ? None : Collapsed);
    item.contextValue = [node.step, node.isRemovable ? "removable" : ""].join(" ").trim();
    return item;
  }

  protected override known(node: ConnectionNode): readonly ConnectionNode[] {
    return node.children;
  }

  protected async rows(_: unknown, isNewest: () => boolean): Promise<ConnectionNode[]> {
    const report = await this.#ask();
    if (isNewest()) {
      this.#watch(report.codexHome);
      this.showMessage("");
    }
    return connectionNodes(report, Date.now());
  }

  override dispose(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#watched?.watchers.dispose();
    super.dispose();
  }

  async #ask(): Promise<ConnectReport> {
    const asked = { dryRun: false, remove: false, status: true };
    const report = await vscode.window.withProgress({ location: { viewId: CONNECTION_VIEW } }, () =>
      this.server.request("connect", asked),
    );
    const doors = report.doors.map(({ door, problem, trusted }) => `${door} ${problem ?? trusted}`);
    this.server.log.info(`connection: ${doors.join(", ")}`);
    return report;
  }

  /** Watch the files and, for links, their targets. */
  #watch(codexHome: string): void {
    if (this.#watched?.codexHome === codexHome) {
      return;
    }
    this.#watched?.watchers.dispose();
    const named = CONFIGURATION.map((name) => join(codexHome, name));
    const files = new Set([...named, ...named.map(settled)]);
    const watchers = [...files].map((file) => {
      const only = new vscode.RelativePattern(vscode.Uri.file(dirname(file)), basename(file));
      const watcher = vscode.workspace.createFileSystemWatcher(only);
      watcher.onDidChange(() => this.#lookSoon());
      watcher.onDidCreate(() => this.#lookSoon());
      watcher.onDidDelete(() => this.#lookSoon());
      return watcher;
    });
    this.#watched = { codexHome, watchers: vscode.Disposable.from(...watchers) };
  }

  /** Report once for all changes in a period. */
  #lookSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.refresh();
    }, WRITTEN_MS);
  }
}

function settled(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
