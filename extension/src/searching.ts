/** Search what was said and done in all sessions; hits are shown as they are found. */

import * as vscode from "vscode";
import { ProgressType } from "vscode-languageclient/node";
import { type App, type Commands, onSession } from "./app.ts";
import type { Server } from "./client.ts";
import { type SearchRow, searchCount, searchRows } from "./model/searching.ts";
import { cut, harmless, subject } from "./model/text.ts";
import type { SearchAnswer, SearchHit, SessionSummary } from "./protocol.ts";
import { errorText } from "./requests.ts";
import { pathForSessions } from "./settings.ts";

/** So many hits are shown; who wants others types more. */
const MOST = 300;
const PAUSE_MS = 250;
/** One letter stands nearly everywhere. */
const LEAST = 2;

const PARTS = new ProgressType<Pick<SearchAnswer, "items">>();

type Item = vscode.QuickPickItem & { readonly hit?: SearchHit };
interface Asked {
  readonly text: string;
  readonly kind: string | null;
  /** The session that is searched alone. */
  readonly sessionId: string | null;
}
type Open = (session: SessionSummary, hit: SearchHit) => Promise<void>;

export function searchCommands(app: App): Commands {
  return {
    searchInSessions: () => search(app),
    searchInSession: onSession(app, async (session) => searchIn(app, session)),
    sessionsOfFile: async (file?: vscode.Uri) => {
      const meant = file ?? vscode.window.activeTextEditor?.document.uri;
      if (meant?.scheme === "file") {
        await showFile(app, meant);
      }
    },
  };
}

const WHAT = "What was said, run or printed. With a capital, case counts.";

function recordOf(app: App): Open {
  return (_, hit) => app.documents.openRecord(hit, `#${hit.seq}`);
}

function search(app: App): void {
  const hits = new HitPicker(app, "Search in Sessions", WHAT, recordOf(app));
  hits.askFor(selected(), null);
}

/** Search in one session; its page shows the hit, or its record where the hit is in no turn. */
function searchIn(app: App, session: SessionSummary): void {
  const open: Open = async (each, hit) =>
    hit.turn === null
      ? recordOf(app)(each, hit)
      : app.pages.show(each).sendBehind({ kind: "place", turn: hit.turn, seq: hit.seq });
  const title = `Search in “${harmless(cut(subject(session), 40))}”`;
  new HitPicker(app, title, WHAT, open).askFor(selected(), session.sessionId);
}

/** Show which turns of which sessions read or changed a file. */
async function showFile(app: App, file: vscode.Uri): Promise<void> {
  const text = await pathForSessions(file);
  const about = "The turns that read or changed it";
  const hits = new HitPicker(app, "Sessions for This File", about, recordOf(app));
  hits.soon({ text, kind: "file", sessionId: null });
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

  constructor(app: App, title: string, about: string, open: Open) {
    this.#app = app;
    this.#title = this.picker.title = title;
    this.picker.placeholder = about;
    // Hits stay in their order; the editors that we support know this setting, their types do not.
    Object.assign(this.picker, { sortByLabel: false });
    this.picker.keepScrollPosition = true;
    this.picker.onDidAccept(() => {
      const [chosen] = this.picker.activeItems;
      this.#open(chosen?.hit, open);
    });
    this.picker.onDidHide(() => {
      this.#cancel();
      this.picker.dispose();
    });
  }

  /** Let a text be typed, and search for it meanwhile. */
  askFor(first: string, sessionId: string | null): void {
    this.picker.onDidChangeValue((text) => this.soon({ text, kind: null, sessionId }));
    this.picker.value = first;
    this.soon({ text: first, kind: null, sessionId });
    this.picker.show();
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
      const of = last?.kind === "hit" ? last.hit.sessionId : asked.sessionId;
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

  #open(hit: SearchHit | undefined, show: Open): void {
    if (hit !== undefined) {
      this.picker.hide();
      void onSession(this.#app, async (session) => {
        this.#app.following.choose(session);
        await show(session, hit);
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
  const iconPath = new vscode.ThemeIcon(icon);
  return { label, description, iconPath, hit, alwaysShow: true };
}

let searches = 0;

/** Send a search; `found` gets the hits of each session as they are found. */
async function hitsOf(
  server: Server,
  asked: Asked,
  token: vscode.CancellationToken,
  found: (items: readonly SearchHit[]) => void,
): Promise<SearchAnswer> {
  searches += 1;
  const partialResultToken = `search-${searches}`;
  const rest = { cwd: null, archived: false, limit: MOST, workDoneToken: null };
  const listening = server.client?.onProgress(PARTS, partialResultToken, ({ items }) =>
    found(items),
  );
  try {
    const params = { ...asked, ...rest, partialResultToken };
    return await server.request("search", params, token);
  } finally {
    listening?.dispose();
  }
}
