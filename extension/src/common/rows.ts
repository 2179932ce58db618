/** Views and their rows. All texts stay plain strings. */

import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import { Newest } from "../client/model/status.ts";
import { errorText } from "../client/requests.ts";
import { type Appearance, harmless, SVG } from "./model/text.ts";

/** The editor redraws at once after 200 ms without a change event, else 200 ms after the last. */
export const APART_MS = 220;

/**
 * A tree view that loads its rows on demand; an older answer never replaces a newer one.
 *
 * A redraw first loads the rows and the children of unfolded rows: while the editor waits for rows
 * it has none, and a click would come without its row. The change event is fired only if a row
 * changed.
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
  /** Rows that the user folded. */
  readonly #folded = new Set<string>();
  /** Rows that were loaded for a redraw, by the id of their parent. */
  #loaded = new Map<string, readonly Row[]>();
  /** The rows at the last change event. */
  #published = "";
  #isStale = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #publishing: Promise<void> | null = null;

  constructor(id: string, server: Server, showCollapseAll = false) {
    this.server = server;
    this.view = vscode.window.createTreeView(id, { treeDataProvider: this, showCollapseAll });
    this.subscriptions.push(
      this.view.onDidCollapseElement(({ element }) => {
        const id = this.idOf(element);
        this.#unfolded.delete(id);
        this.#folded.add(id);
        this.#loaded.delete(id);
        this.#published = ""; // the next event makes the editor reload the children on unfolding
      }),
      this.view.onDidChangeVisibility(() => this.isOld() && this.refresh()),
    );
  }

  /** Return a row's tree item, with its initial folding. */
  protected abstract itemOf(row: Row): vscode.TreeItem;

  getTreeItem(row: Row): vscode.TreeItem {
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = this.itemOf(row);
    // The editor forgets the folding of a row that moves, for example from yesterday to today.
    if (item.collapsibleState === Collapsed && this.#unfolded.has(item.id ?? "")) {
      item.collapsibleState = Expanded;
    }
    return item;
  }

  /** Whether a row's children are visible. */
  protected isUnfolded(row: Row): boolean {
    const { collapsibleState } = this.getTreeItem(row);
    const isExpanded = collapsibleState === vscode.TreeItemCollapsibleState.Expanded;
    return isExpanded && !this.#folded.has(this.idOf(row));
  }

  /** Load a row's children, or the top rows; `isNewest` returns whether they will be shown. */
  protected abstract rows(row: Row | undefined, isNewest: () => boolean): Promise<Row[]>;

  /** Whether the server can be asked for rows. */
  protected mayLoad(): boolean {
    return this.server.state.kind === "ready";
  }

  /** Return a row's children if they are loaded, else null. */
  protected known(_row: Row): readonly Row[] | null {
    return null;
  }

  /** Whether the tree is loaded again when it becomes visible. */
  protected isOld(): boolean {
    return this.#isStale;
  }

  /** Reload now if the view is visible, else when it becomes visible. */
  refresh(): void {
    this.#isStale = !this.view.visible;
    if (this.view.visible) {
      void this.redraw();
    }
  }

  /** Redraw the tree; resolves after the change event. */
  protected async redraw(): Promise<void> {
    const isNewest = this.#redraws.begin();
    const loaded = new Map<string, readonly Row[]>();
    await this.#loadBelow(undefined, loaded);
    if (isNewest()) {
      this.#loaded = loaded;
      this.#publishing ??= this.#publish().finally(() => {
        this.#publishing = null;
      });
      await this.#publishing;
    }
  }

  /**
   * Fire the change event after the editor has drawn the previous change: an event while the
   * editor requests a row's children would leave that row without any.
   */
  async #publish(): Promise<void> {
    for (let wait = this.#untilDrawn(); wait > 0; wait = this.#untilDrawn()) {
      await sleep(Math.min(wait, APART_MS));
    }
    const all = [...this.#loaded]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, rows]) => [id, rows, rows.map((row) => this.itemOf(row))]);
    const news = JSON.stringify(all);
    if (news !== this.#published) {
      this.#published = news;
      this.#drawnAt = performance.now();
      this.#emitter.fire(undefined);
    }
    this.published();
  }

  /** Called after the change event; the editor gets the rows as soon as it asks. */
  protected published(): void {}

  #untilDrawn(): number {
    return this.#drawnAt + APART_MS - performance.now();
  }

  /** Show a text above the rows, which counts as a change (`APART_MS`). */
  protected showMessage(text: string): void {
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

  /** Return a row's id for the editor; empty for the root. */
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
      this.showMessage("");
      return [];
    }
    try {
      return await this.rows(row, isNewest);
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      this.server.log.warn(`${this.view.title?.toLowerCase()}: ${why}`);
      if (isNewest()) {
        this.showMessage(harmless(errorText(error)));
      }
      return [];
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions, this.view, this.#emitter).dispose();
  }
}

/** The addresses of rows with a badge, which is their path. */
const BADGE_SCHEME = "codex-checkpoints-badge";

/** Give each row the badge that its address names. */
export function showBadges(): vscode.Disposable {
  return vscode.window.registerFileDecorationProvider({
    provideFileDecoration: ({ scheme, path }) =>
      scheme === BADGE_SCHEME ? { badge: path.slice(1) } : undefined,
  });
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
  if (row.badge) {
    item.resourceUri = vscode.Uri.from({ scheme: BADGE_SCHEME, path: `/${row.badge}` });
  }
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

/** A thin ring, thicker for the filled part of the context, so that not only colour differs. */
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
