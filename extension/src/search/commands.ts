/** The search commands: the user types the text in a box above the view of hits. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { SessionSummary } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import { pathForSessions, setContext } from "../client/settings.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { cut, harmless, iconless, plain, subject } from "../common/model/text.ts";
import {
  FILE,
  type HitNode,
  isEnough,
  KINDS,
  type Query,
  remembered,
  type SearchNode,
} from "./model/rows.ts";
import type { SearchView } from "./view.ts";

/** Storage key of the recent searches. */
const MEMORY = "searches";

export function searchCommands(app: App, view: SearchView, memory: vscode.Memento): Commands {
  const box = new SearchBox(view, memory);
  const goToHit = async (step: 1 | -1) => {
    const row = view.revealNext(step);
    if (row !== null) {
      await openHit(app, view, row);
    }
  };
  return {
    searchSessions: () => box.open(null),
    searchInSession: onSession(app, async (session) => box.open(session)),
    sessionsOfFile: async (file?: vscode.Uri) => {
      const meant = file ?? vscode.window.activeTextEditor?.document.uri;
      if (meant?.scheme === "file") {
        await view.open();
        void view.search({ text: await pathForSessions(meant), kinds: [FILE], session: null });
        view.focusFirst();
      }
    },
    recentSearches: () => box.openRecent(),
    earlierSearch: () => box.recall(1),
    laterSearch: () => box.recall(-1),
    filterHits: () => box.filter(),
    repeatSearch: () => view.query && view.search(view.query),
    stopSearch: () => view.stop(),
    clearSearch: () => view.close(),
    searchOlder: () => view.searchOlder(),
    showAllHits: (row: SearchNode) =>
      attempt(async () => {
        if (row.kind === "moreHits") {
          await view.showAll(row.group);
        }
      }),
    openHit: (row: HitNode) => openHit(app, view, row),
    showHitRecord: ({ sessionId, hit }: HitNode) =>
      app.reports.openRecord(sessionId, `#${hit.seq}`),
    nextHit: () => goToHit(1),
    previousHit: () => goToHit(-1),
  };
}

/** Show a hit in its session's page, or its record if the hit is outside all turns. */
function openHit(app: App, view: SearchView, row: HitNode): Promise<void> {
  const { sessionId } = row;
  const { turn, seq, line } = row.hit;
  view.choose(row);
  const { text, kinds } = view.shown ?? { text: "", kinds: [FILE] };
  const found = kinds.includes(FILE) ? null : { text, line };
  return onSession(app, async (session) => {
    app.following.choose(session);
    await (turn === null
      ? app.reports.openRecord(session.sessionId, `#${seq}`)
      : app.pages.preview(session, false).sendOnceLoaded({ kind: "place", turn, seq, found }));
  })({ sessionId });
}

/** The search box: the view updates while the user types, and earlier searches can be recalled. */
class SearchBox {
  readonly #view: SearchView;
  readonly #memory: vscode.Memento;
  #box: vscode.InputBox | null = null;
  #session: Query["session"] = null;
  #kinds: readonly string[] = [];

  constructor(view: SearchView, memory: vscode.Memento) {
    this.#view = view;
    this.#memory = memory;
  }

  /** Open the box to search all sessions, or one. */
  async open(session: SessionSummary | null): Promise<void> {
    const shown = this.#view.query;
    const before = shown === null || shown.kinds.includes(FILE) ? "" : shown.text;
    const text = selected() || before;
    await this.#view.open();
    const box = vscode.window.createInputBox();
    this.#box = box;
    this.#session = session && { sessionId: session.sessionId, name: subject(session) };
    box.title =
      session === null ? "Search Sessions" : `Search in “${harmless(cut(subject(session), 40))}”`;
    box.placeholder = "Text that was said, run or printed";
    box.prompt = "A capital makes case count. ↑ and ↓ bring back recent searches.";
    box.value = text;
    box.valueSelection = [0, text.length];
    box.onDidChangeValue((value) => this.#view.soon(this.#queryFor(value)));
    box.onDidAccept(() => {
      const { value } = box;
      box.hide();
      this.#accept(value);
    });
    box.onDidHide(() => {
      setContext("searchBox", false);
      this.#box = null;
      this.#remember(box.value);
      box.dispose();
    });
    setContext("searchBox", true);
    box.show();
    if (!isDeepStrictEqual(this.#queryFor(text), shown)) {
      this.#view.soon(this.#queryFor(text));
    }
  }

  /** Put the previous or next recent search into the box. */
  recall(step: 1 | -1): void {
    const texts = this.#texts;
    const text = texts[texts.indexOf(this.#box?.value ?? "") + step];
    if (this.#box !== null && text !== undefined) {
      this.#box.value = text;
      this.#box.valueSelection = [0, text.length];
      this.#view.soon(this.#queryFor(text));
    }
  }

  /** Let the user choose a recent search, and repeat it in all sessions. */
  async openRecent(): Promise<void> {
    const items = this.#texts.map((text) => ({ label: iconless(plain(text)), text }));
    const placeHolder = items.length === 0 ? "There are no recent searches" : "Search again for";
    const chosen = await vscode.window.showQuickPick(items, {
      title: "Recent Searches",
      placeHolder,
    });
    if (chosen !== undefined) {
      this.#session = null;
      await this.#show({ text: chosen.text, kinds: this.#kinds, session: null });
    }
  }

  /** Let the user choose the kinds of hits. */
  async filter(): Promise<void> {
    const items = Object.entries(KINDS).map(([name, { icon, many }]) => ({
      name,
      label: many,
      iconPath: new vscode.ThemeIcon(icon),
      picked: this.#kinds.length === 0 || this.#kinds.includes(name),
    }));
    const title = "Kinds of Hits";
    const placeHolder = "Show hits of these kinds only";
    const chosen = await vscode.window.showQuickPick(items, {
      title,
      placeHolder,
      canPickMany: true,
    });
    if (chosen !== undefined) {
      this.#kinds = chosen.length === items.length ? [] : chosen.map(({ name }) => name);
      const { query } = this.#view;
      if (query !== null) {
        await this.#show({ ...query, kinds: this.#kinds });
      }
    }
  }

  #queryFor(text: string): Query {
    return { text, kinds: this.#kinds, session: this.#session };
  }

  /** Search for the text in the box unless its hits are shown already; go to the first hit. */
  #accept(text: string): void {
    const query = this.#queryFor(text);
    if (isEnough(text) && !isDeepStrictEqual(query, this.#view.query)) {
      void this.#view.search(query);
    }
    this.#view.focusFirst();
  }

  async #show(query: Query): Promise<void> {
    await this.#view.open();
    void this.#view.search(query);
    this.#view.focusFirst();
  }

  get #texts(): readonly string[] {
    return this.#memory.get<string[]>(MEMORY) ?? [];
  }

  #remember(text: string): void {
    if (isEnough(text)) {
      void this.#memory.update(MEMORY, remembered(this.#texts, text));
    }
  }
}

/** Return the selected text if it is within one line. */
function selected(): string {
  const editor = vscode.window.activeTextEditor;
  const text = editor?.document.getText(editor.selection) ?? "";
  return text.length > 100 || text.includes("\n") ? "" : text.trim();
}
