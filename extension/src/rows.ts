/** Views and their rows. All texts stay plain strings. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { Newest } from "./model/status.ts";
import { type Appearance, harmless, SVG } from "./model/text.ts";
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
  const [, eighths, alert] = /^meter-(\d)(-alert)?$/.exec(row.icon) ?? [];
  item.iconPath =
    eighths === undefined
      ? new vscode.ThemeIcon(row.icon, colour)
      : {
          light: ring(Number(eighths), alert ? "#bf8803" : "#005fb8"),
          dark: ring(Number(eighths), alert ? "#cca700" : "#4daafc"),
        };
  return item;
}

/** A ring that is filled as far as a context is. */
function ring(eighths: number, colour: string): vscode.Uri {
  const radius = 5.25;
  const round = 2 * Math.PI * radius;
  const circle = (stroke: string, length: number) =>
    `<circle cx="8" cy="8" r="${radius}" fill="none" stroke="${stroke}" stroke-width="2.5" ` +
    `stroke-dasharray="${length} ${round}" transform="rotate(-90 8 8)"/>`;
  const parts = circle("#80808059", round) + circle(colour, (round * eighths) / 8);
  const svg = `<svg xmlns="${SVG}" viewBox="0 0 16 16">${parts}</svg>`;
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`);
}
