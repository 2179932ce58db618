/** Views and their rows. All texts stay plain strings. */

import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import { Newest } from "../client/model/status.ts";
import { errorText } from "../client/requests.ts";
import { type Appearance, harmless, SVG } from "./model/text.ts";

/** The editor draws at once if it was not told of a change for 200 ms, else 200 ms after the last. */
export const APART_MS = 220;

/**
 * A tree view that loads its rows on demand; an older answer never replaces a newer one.
 *
 * To draw it again the rows are loaded first, with those below unfolded ones: while the editor waits
 * for rows it knows none, and what is clicked then would come without its row. It is told only where
 * a row changed.
 */
export abstract class Tree<Row extends object>
  implements vscode.TreeDataProvider<Row>, vscode.Disposable
{
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly view: vscode.TreeView<Row>;
  protected readonly server: Server;
  protected readonly subscriptions: vscode.Disposable[] = [];
  readonly #requests = new Newest();
  readonly #redraws = new Newest();
  readonly #unfolded = new Set<string>();
  /** Rows that a person folded. */
  readonly #folded = new Set<string>();
  /** Rows that were loaded to draw the tree again, by the id of the row above. */
  #loaded = new Map<string, readonly Row[]>();
  /** What the editor was told last. */
  #told = "";
  #isStale = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #telling: Promise<void> | null = null;

  constructor(id: string, server: Server, showCollapseAll = false) {
    this.server = server;
    this.view = vscode.window.createTreeView(id, { treeDataProvider: this, showCollapseAll });
    this.subscriptions.push(
      this.view.onDidCollapseElement(({ element }) => {
        const id = this.idOf(element);
        this.#unfolded.delete(id);
        this.#folded.add(id);
        this.#loaded.delete(id);
        this.#told = ""; // once told, the editor asks again for what is below when that is unfolded
      }),
      this.view.onDidChangeVisibility(() => this.isOld() && this.refresh()),
    );
  }

  /** A row as the editor shows it first, folded or unfolded. */
  protected abstract itemOf(row: Row): vscode.TreeItem;

  getTreeItem(row: Row): vscode.TreeItem {
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = this.itemOf(row);
    // The editor forgets what was unfolded when a row moves, as from yesterday to today.
    if (item.collapsibleState === Collapsed && this.#unfolded.has(item.id ?? "")) {
      item.collapsibleState = Expanded;
    }
    return item;
  }

  /** Whether the rows below one are in sight. */
  protected isUnfolded(row: Row): boolean {
    const { collapsibleState } = this.getTreeItem(row);
    const isExpanded = collapsibleState === vscode.TreeItemCollapsibleState.Expanded;
    return isExpanded && !this.#folded.has(this.idOf(row));
  }

  /** Load the rows below one, or the top rows; `isNewest` tells whether they will be shown. */
  protected abstract rows(row: Row | undefined, isNewest: () => boolean): Promise<Row[]>;

  /** Whether the server can be asked for rows. */
  protected mayLoad(): boolean {
    return this.server.state.kind === "ready";
  }

  /** The rows below one if they are known already; else null. */
  protected known(_row: Row): readonly Row[] | null {
    return null;
  }

  /** Whether the tree is loaded again when it becomes visible. */
  protected isOld(): boolean {
    return this.#isStale;
  }

  /** Load again: now if the view is visible, else when it becomes visible. */
  refresh(): void {
    this.#isStale = !this.view.visible;
    if (this.view.visible) {
      void this.redraw();
    }
  }

  /** Draw the tree again; done when the editor was told. */
  protected async redraw(): Promise<void> {
    const isNewest = this.#redraws.begin();
    const loaded = new Map<string, readonly Row[]>();
    await this.#loadBelow(undefined, loaded);
    if (isNewest()) {
      this.#loaded = loaded;
      this.#telling ??= this.#tell().finally(() => {
        this.#telling = null;
      });
      await this.#telling;
    }
  }

  /**
   * Tell the editor of a change when it has drawn the one before: told while it asks for the rows
   * below one, it would show none there.
   */
  async #tell(): Promise<void> {
    for (let wait = this.#untilDrawn(); wait > 0; wait = this.#untilDrawn()) {
      await sleep(Math.min(wait, APART_MS));
    }
    const all = [...this.#loaded]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, rows]) => [id, rows, rows.map((row) => this.itemOf(row))]);
    const news = JSON.stringify(all);
    if (news !== this.#told) {
      this.#told = news;
      this.#drawnAt = performance.now();
      this.#emitter.fire(undefined);
    }
    this.told();
  }

  /** The editor was told: it has the rows as soon as it asks. */
  protected told(): void {}

  #untilDrawn(): number {
    return this.#drawnAt + APART_MS - performance.now();
  }

  /** Show a text above the rows, which counts as a change (`APART_MS`). */
  protected say(text: string): void {
    if (text !== (this.view.message ?? "")) {
      this.view.message = text;
      this.#drawnAt = performance.now();
    }
  }

  async #loadBelow(row: Row | undefined, loaded: Map<string, readonly Row[]>): Promise<void> {
    const rows = await this.load(row);
    loaded.set(this.idOf(row), rows);
    const unfolded = rows.filter((each) => this.#unfolded.has(this.idOf(each)));
    await Promise.all(unfolded.map((each) => this.#loadBelow(each, loaded)));
  }

  /** What names a row for the editor; empty for what is above the top rows. */
  protected idOf(row: Row | undefined): string {
    return row === undefined ? "" : (this.itemOf(row).id ?? "");
  }

  async getChildren(row?: Row): Promise<Row[]> {
    const id = this.idOf(row);
    const loaded = this.#loaded.get(id) ?? (await this.load(row));
    this.#loaded.delete(id);
    this.#unfolded.add(id);
    this.#folded.delete(id);
    this.#drawnAt = performance.now();
    return [...loaded];
  }

  protected async load(row?: Row): Promise<Row[]> {
    const known = row === undefined ? null : this.known(row);
    if (known !== null) {
      return [...known];
    }
    const isNewest = row === undefined ? this.#requests.begin() : () => true;
    if (!this.mayLoad()) {
      this.say("");
      return [];
    }
    try {
      return await this.rows(row, isNewest);
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      this.server.log.warn(`${this.view.title?.toLowerCase()}: ${why}`);
      if (isNewest()) {
        this.say(harmless(errorText(error)));
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

/** A thin ring, thick as far as a context is filled: the two differ in more than their colour. */
function ring(eighths: number, colour: string): vscode.Uri {
  const radius = 5.25;
  const round = 2 * Math.PI * radius;
  const circle = (stroke: string, width: number, length: number) =>
    `<circle cx="8" cy="8" r="${radius}" fill="none" stroke="${stroke}" stroke-width="${width}" ` +
    `stroke-dasharray="${length} ${round}" transform="rotate(-90 8 8)"/>`;
  const parts = circle("#808080", 1.25, round) + circle(colour, 3.5, (round * eighths) / 8);
  const svg = `<svg xmlns="${SVG}" viewBox="0 0 16 16">${parts}</svg>`;
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`);
}
