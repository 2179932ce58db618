/** Views and their rows. All texts stay plain strings. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Badge } from "./model/sessions.ts";
import { Newest } from "./model/status.ts";
import { type Appearance, harmless } from "./model/text.ts";
import { errorText } from "./requests.ts";

/** A tree view that loads its rows on demand; an older answer never replaces a newer one. */
export abstract class Tree<Row> implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly view: vscode.TreeView<Row>;
  protected readonly server: Server;
  protected readonly subscriptions: vscode.Disposable[] = [];
  readonly #requests = new Newest();

  constructor(id: string, server: Server) {
    this.server = server;
    this.view = vscode.window.createTreeView(id, { treeDataProvider: this });
  }

  abstract getTreeItem(row: Row): vscode.TreeItem;

  /** Load the rows below one, or the top rows; `isNewest` tells whether they will be shown. */
  protected abstract rows(row: Row | undefined, isNewest: () => boolean): Promise<Row[]>;

  /** The rows below one if they are known already; else null. */
  protected known(_row: Row): readonly Row[] | null {
    return null;
  }

  protected redraw(): void {
    this.#emitter.fire(undefined);
  }

  async getChildren(row?: Row): Promise<Row[]> {
    const known = row === undefined ? null : this.known(row);
    if (known !== null) {
      return [...known];
    }
    const isNewest = row === undefined ? this.#requests.begin() : () => true;
    if (this.server.state.kind !== "ready") {
      this.view.message = "";
      return [];
    }
    try {
      return await this.rows(row, isNewest);
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      this.server.log.warn(`${this.view.title?.toLowerCase()}: ${why}`);
      if (isNewest()) {
        this.view.message = harmless(errorText(error));
      }
      return [];
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions, this.view, this.#emitter).dispose();
  }
}

export function treeItem(
  id: string,
  row: Appearance,
  state: vscode.TreeItemCollapsibleState = vscode.TreeItemCollapsibleState.None,
): vscode.TreeItem {
  const item = new vscode.TreeItem(row.label, state);
  item.id = id;
  item.description = row.description;
  item.tooltip = row.tooltip;
  item.accessibilityInformation = { label: row.spoken };
  const colour = row.colour === null ? undefined : new vscode.ThemeColor(row.colour);
  item.iconPath = new vscode.ThemeIcon(row.icon, colour);
  return item;
}

const SCHEME = "codex-checkpoints-badge";

/** The address holds the whole badge, so the provider keeps no state. */
export function badgeUri({ text, alert }: Badge): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `/${alert ? "alert" : "calm"}/${text}` });
}

export function provideBadges(): vscode.Disposable {
  return vscode.window.registerFileDecorationProvider({
    provideFileDecoration(uri) {
      const [, alert, text] = uri.path.split("/");
      if (uri.scheme !== SCHEME || !text) {
        return undefined;
      }
      const isAlert = alert === "alert";
      const colour = isAlert ? new vscode.ThemeColor("list.warningForeground") : undefined;
      return new vscode.FileDecoration(text, `context ${text} percent`, colour);
    },
  });
}
