/** Search what was said and done in all sessions; hits are shown as they are found. */

import * as vscode from "vscode";
import { ProgressType } from "vscode-languageclient/node";
import { type App, type Commands, onSession } from "./app.ts";
import type { Server } from "./client.ts";
import { placeOfTurn } from "./model/markers.ts";
import { type SearchRow, searchCount, searchRows } from "./model/searching.ts";
import { harmless } from "./model/text.ts";
import {
  type SearchAnswer,
  type SearchHit,
  SearchRequest,
  type SessionSummary,
} from "./protocol.ts";
import { errorText } from "./requests.ts";
import { pathForSessions } from "./settings.ts";

/** So many hits are shown; who wants others types more. */
const MOST = 300;
const PAUSE_MS = 250;
/** One letter stands nearly everywhere. */
const LEAST = 2;

const PARTS = new ProgressType<Pick<SearchAnswer, "items">>();
const SHOW_STATE = {
  iconPath: new vscode.ThemeIcon("history"),
  tooltip: "Show the View as of This Turn",
};

type Item = vscode.QuickPickItem & { readonly hit?: SearchHit };
type Asked = { readonly text: string; readonly kind: string | null };

export function searchCommands(app: App): Commands {
  return {
    searchInSessions: () => search(app),
    sessionsOfFile: async (file?: vscode.Uri) => {
      const meant = file ?? vscode.window.activeTextEditor?.document.uri;
      if (meant?.scheme === "file") {
        await showFile(app, meant);
      }
    },
  };
}

function search(app: App): void {
  const hits = new HitPicker(app, "Search in Sessions");
  hits.picker.placeholder = "What was said, run or printed. With a capital, case counts.";
  hits.picker.onDidChangeValue((text) => hits.soon({ text, kind: null }));
  hits.picker.value = selected();
  hits.soon({ text: hits.picker.value, kind: null });
  hits.picker.show();
}

/** Show which turns of which sessions read or changed a file. */
async function showFile(app: App, file: vscode.Uri): Promise<void> {
  const text = await pathForSessions(file);
  const hits = new HitPicker(app, "Sessions of This File");
  hits.picker.placeholder = "The turns that read or changed it";
  hits.soon({ text, kind: "file" });
  hits.picker.show();
}

/** The text that is selected, where it is a part of one line. */
function selected(): string {
  const editor = vscode.window.activeTextEditor;
  const text = editor?.document.getText(editor.selection) ?? "";
  return text.length > 100 || text.includes("\n") ? "" : text.trim();
}

class HitPicker {
  readonly picker = vscode.window.createQuickPick<Item>();
  readonly #app: App;
  readonly #title: string;
  #timer: NodeJS.Timeout | undefined;
  #stop: vscode.CancellationTokenSource | null = null;

  constructor(app: App, title: string) {
    this.#app = app;
    this.#title = this.picker.title = title;
    // Hits stay in their order; the editors that we support know this setting, their types do not.
    Object.assign(this.picker, { sortByLabel: false });
    this.picker.keepScrollPosition = true;
    this.picker.onDidAccept(() => {
      const [chosen] = this.picker.activeItems;
      this.#open(chosen?.hit, (hit) => app.documents.openRecord(hit, `#${hit.seq}`));
    });
    this.picker.onDidTriggerItemButton(({ item }) => {
      this.#open(item.hit, async (hit, session) => {
        const { turnId, turn: number } = hit;
        if (turnId !== null && number !== null) {
          const place = placeOfTurn(hit.sessionId, { turnId, number });
          await app.documents.openState("view", session, place);
        }
      });
    });
    this.picker.onDidHide(() => {
      this.#cancel();
      this.picker.dispose();
    });
  }

  /** Search in a moment, and no longer for what was asked before. */
  soon(asked: Asked): void {
    this.#cancel();
    this.picker.busy = false;
    if (asked.text.trim().length < LEAST) {
      this.#show([], "");
      return;
    }
    const stop = new vscode.CancellationTokenSource();
    this.#stop = stop;
    this.#timer = setTimeout(() => void this.#search(asked, stop.token), PAUSE_MS);
  }

  async #search(asked: Asked, token: vscode.CancellationToken): Promise<void> {
    let rows: readonly SearchRow[] = [];
    const found = (items: readonly SearchHit[]) => {
      const last = rows.findLast((row) => row.kind === "hit");
      const of = last?.kind === "hit" ? last.hit.sessionId : null;
      rows = [...rows, ...searchRows(items, asked.text, of, Date.now())];
      this.#show(rows.map(itemOf), `${searchCount(rows, false)}, searching`);
    };
    this.picker.busy = true;
    try {
      const { more } = await hitsOf(this.#app.server, asked, token, (items) => {
        if (!token.isCancellationRequested) {
          found(items);
        }
      });
      if (!token.isCancellationRequested) {
        this.#show(rows.map(itemOf), searchCount(rows, more));
        this.picker.busy = false;
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.#show([], harmless(errorText(error)));
        this.picker.busy = false;
      }
    }
  }

  /** Show items and what they are; the active one stays active. */
  #show(items: readonly Item[], standing: string): void {
    const active = this.picker.activeItems[0]?.hit;
    this.picker.items = items;
    const same = active && items.find(({ hit }) => hit === active);
    if (same !== undefined) {
      this.picker.activeItems = [same];
    }
    this.picker.title = standing === "" ? this.#title : `${this.#title}: ${standing}`;
  }

  #open(
    hit: SearchHit | undefined,
    show: (hit: SearchHit, session: SessionSummary) => Promise<void>,
  ): void {
    if (hit !== undefined) {
      this.picker.hide();
      void onSession(this.#app, async (session) => {
        this.#app.following.choose(session);
        await show(hit, session);
      })({ sessionId: hit.sessionId });
    }
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#stop?.cancel();
    this.#stop = null;
  }
}

function itemOf(row: SearchRow): Item {
  if (row.kind === "session") {
    return { label: row.label, kind: vscode.QuickPickItemKind.Separator };
  }
  const { label, description, icon, hit } = row;
  const buttons = hit.turn === null ? [] : [SHOW_STATE];
  const iconPath = new vscode.ThemeIcon(icon);
  return { label, description, iconPath, buttons, hit, alwaysShow: true };
}

let asked = 0;

/** Send a search; `found` gets the hits of each session as they are found. */
async function hitsOf(
  server: Server,
  { text, kind }: Asked,
  token: vscode.CancellationToken,
  found: (items: readonly SearchHit[]) => void,
): Promise<SearchAnswer> {
  asked += 1;
  const partialResultToken = `search-${asked}`;
  const rest = { cwd: null, archived: false, limit: MOST, workDoneToken: null };
  const listening = server.client?.onProgress(PARTS, partialResultToken, ({ items }) =>
    found(items),
  );
  try {
    const params = { text, kind, ...rest, partialResultToken };
    return await server.request(SearchRequest, params, token);
  } finally {
    listening?.dispose();
  }
}
