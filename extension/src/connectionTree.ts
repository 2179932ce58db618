/**
 * The view of how Codex and we are connected.
 *
 * Asking starts Codex for a moment, so it is asked only while the view is seen: when it opens, when
 * a person says so, when Codex's configuration changes - there Codex notes that it may call us -
 * and, until all is trusted, when they come back from a terminal or to this window.
 */

import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { type ConnectionNode, connectionNodes, isSettled } from "./model/connection.ts";
import { Newest } from "./model/newest.ts";
import { harmless } from "./model/text.ts";
import { type ConnectReport, ConnectRequest } from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";
import { treeItem } from "./treeItem.ts";
import { workspacePaths } from "./workspace.ts";

const CONNECTION_VIEW = "codexCheckpoints.connection";

/** What is known is good for so long. */
const FRESH_MS = 60_000;

/** Who comes back has perhaps been to Codex, and it may write several times; not more often. */
const AGAIN_MS = 5_000;

/** What is being written is looked at when it is done. */
const WRITTEN_MS = 500;

const CONFIGURATION = ["config.toml", "hooks.json"];

export class ConnectionTree implements vscode.TreeDataProvider<ConnectionNode>, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly #server: Server;
  readonly #view: vscode.TreeView<ConnectionNode>;
  readonly #subscriptions: vscode.Disposable[];
  #watched: { readonly codexHome: string; readonly watchers: vscode.Disposable } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #report: ConnectReport | null = null;
  #askedAt = Number.NEGATIVE_INFINITY;
  readonly #looks = new Newest();

  constructor(server: Server) {
    this.#server = server;
    this.#view = vscode.window.createTreeView(CONNECTION_VIEW, { treeDataProvider: this });
    this.#subscriptions = [
      server.onDidChangeState(({ kind }) => kind === "ready" && this.refresh()),
      this.#view.onDidChangeVisibility(() => this.#lookWhenOlderThan(FRESH_MS)),
      vscode.window.onDidChangeWindowState(({ focused }) => focused && this.#lookUnlessSettled()),
      vscode.window.onDidCloseTerminal(() => this.#lookUnlessSettled()),
    ];
  }

  /** Ask anew, at once when the view is seen, else as soon as it is. */
  refresh(): void {
    this.#askedAt = Number.NEGATIVE_INFINITY;
    this.#emitter.fire(undefined);
  }

  getTreeItem(node: ConnectionNode): vscode.TreeItem {
    const { None, Collapsed } = vscode.TreeItemCollapsibleState;
    const item = treeItem(node.id, node.row, node.children.length === 0 ? None : Collapsed);
    item.contextValue = [node.step, node.isRemovable ? "removable" : ""].join(" ").trim();
    return item;
  }

  async getChildren(node?: ConnectionNode): Promise<ConnectionNode[]> {
    if (node !== undefined) {
      return [...node.children];
    }
    // Who asked before the configuration was changed knows less than who asked after it.
    const isNewest = this.#looks.begin();
    if (this.#server.state.kind !== "ready") {
      this.#view.message = "";
      return [];
    }
    try {
      let report = this.#report;
      if (report === null || this.#age() > FRESH_MS) {
        report = await this.#ask();
        if (isNewest()) {
          this.#report = report;
          this.#askedAt = performance.now();
          this.#watch(report.codexHome);
        }
      }
      if (isNewest()) {
        this.#view.message = "";
      }
      return connectionNodes(report, Date.now());
    } catch (error) {
      this.#server.log.warn(`connection: ${error instanceof Error ? error.message : error}`);
      if (isNewest()) {
        this.#view.message = harmless(saysRefusal(error));
      }
      return [];
    }
  }

  dispose(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#watched?.watchers.dispose();
    vscode.Disposable.from(...this.#subscriptions, this.#view, this.#emitter).dispose();
  }

  async #ask(): Promise<ConnectReport> {
    const [cwd] = vscode.workspace.isTrusted ? await workspacePaths() : [];
    const wish = { dryRun: false, remove: false, status: true, cwd: cwd ?? null };
    const report = await vscode.window.withProgress({ location: { viewId: CONNECTION_VIEW } }, () =>
      this.#server.request(ConnectRequest, wish),
    );
    const doors = report.doors.map(({ door, problem, trusted }) => `${door} ${problem ?? trusted}`);
    this.#server.log.info(`connection: ${doors.join(", ")}`);
    return report;
  }

  /** Watch the files, and those that they lead to: many keep theirs elsewhere, behind a link. */
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

  /** Look once for all that happens until then; what is not seen is looked at when it is. */
  #lookSoon(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = null;
        this.refresh();
      },
      Math.max(WRITTEN_MS, AGAIN_MS - this.#age()),
    );
  }

  #lookUnlessSettled(): void {
    if (this.#report !== null && !isSettled(this.#report)) {
      this.#lookSoon();
    }
  }

  #age(): number {
    return performance.now() - this.#askedAt;
  }

  #lookWhenOlderThan(milliseconds: number): void {
    if (this.#view.visible && this.#age() > milliseconds) {
      this.refresh();
    }
  }
}

function settled(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
