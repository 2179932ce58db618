/** Webview pages, each in a tab: they load no foreign content and use no markup from sessions. */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { answering, awake, Unanswered } from "../client/client.ts";
import { REMEDIES, type Remedy } from "../client/model/refusals.ts";
import { whyDown } from "../client/model/status.ts";
import { codeOf, errorWords, remedied } from "../client/requests.ts";
import type { Changes } from "../sessions/sessionInView.ts";
import type { App } from "./app.ts";
import { Outbox } from "./model/outbox.ts";
import { type FromPage, fromPage, keyOf, readState, type ToPage } from "./model/pages.ts";
import { harmless, plain } from "./model/text.ts";

/** The stylesheets of the pages, in order. */
const STYLES = {
  preview: ["pages.css"],
  sections: ["pages.css"],
  compaction: ["pages.css"],
  push: ["pages.css"],
  session: ["pages.css", "session.css", "conversation.css"],
} as const;

/** View types of the webview panels. */
const TYPES = {
  preview: "codexCheckpoints.restorePreview",
  sections: "codexCheckpoints.report",
  compaction: "codexCheckpoints.compactionPreview",
  push: "codexCheckpoints.pushPreview",
  session: "codexCheckpoints.sessionPage",
  remote: "codexCheckpoints.remoteSession",
} as const;

/** Skeleton shown until the content is loaded. */
const SKELETON = `<div class="skeleton" aria-hidden="true">${"<div></div>".repeat(6)}</div>`;

/** Return a page's script, which has the page's name except for `remote`. */
const scriptOf = (name: keyof typeof TYPES) => (name === "remote" ? "session" : name);

/** The ids of a page's subject, kept over a reload. */
export type Ids<K extends string> = Readonly<Record<K, string>>;

/** The tab of a page. */
export interface Tab<K extends string> {
  readonly app: App;
  readonly panel: vscode.WebviewPanel;
  readonly ids: Ids<K>;
  /** Whether the editor restored the tab with its window, rather than the user opening it. */
  readonly isRestored: boolean;
  /** Load or reload the page; its script sends `ready`. */
  readonly load: () => void;
  readonly gone: () => void;
}

export abstract class Page {
  protected readonly app: App;
  protected readonly panel: vscode.WebviewPanel;
  /** Whether the page can force a refused action. */
  protected readonly canForce: boolean = false;
  /** Why a restored tab waits for the user before it loads; empty if it loads at once. */
  protected readonly waits: string = "";
  readonly #isRestored: boolean;
  readonly #load: () => void;
  #isGone = false;
  /** Whether the script of the page runs, and the title that its tab gets then. */
  #isReady = false;
  #title = "";
  readonly #outbox = new Outbox((message) => this.send(message));
  /** The last refusal, for the page's remedy buttons. */
  #refusal: unknown = null;

  constructor({ app, panel, isRestored, load, gone }: Tab<never>) {
    this.app = app;
    this.panel = panel;
    this.#isRestored = isRestored;
    this.#load = load;
    let wasVisible = panel.visible;
    const subscriptions = vscode.Disposable.from(
      panel.webview.onDidReceiveMessage((value: unknown) => void this.#receive(fromPage(value))),
      app.feed.onDidChange((changes) => this.#follow(changes)),
      panel.onDidChangeViewState(() => {
        if (panel.visible && !wasVisible) {
          void this.changed(); // it got no updates while hidden
        }
        wasVisible = panel.visible;
        if (panel.active) {
          this.activated();
        }
      }),
    );
    panel.onDidDispose(() => {
      this.#isGone = true;
      this.leave();
      subscriptions.dispose();
      gone();
    });
  }

  /** Load the page and request its content in parallel: a window's first page loads slowly. */
  open(): void {
    this.#outbox.reload();
    this.#load();
    if (this.#isRestored && this.waits !== "") {
      this.complain(this.waits, true);
    } else {
      void this.look();
    }
  }

  /** Show the session's current state. */
  protected abstract look(): Promise<void>;

  /** Handle a user action on the page. */
  protected abstract handle(message: FromPage): unknown;

  /** Whether a session change may affect the page. */
  protected abstract concerns(changes: ReadonlySet<string>): boolean;

  /** Handle a relevant change while the page is visible. */
  protected changed(): unknown {
    return this.look();
  }

  /** The page came to the front. */
  protected activated(): void {}

  /** The page was closed. */
  protected leave(): void {}

  protected show(title: string, view: ToPage): void {
    if (!this.#isGone) {
      this.#title = title;
      this.#entitle();
      this.#outbox.show(view);
    }
  }

  /** The editor may store the tab at its new title: its script has to have named its session. */
  #entitle(): void {
    if (this.#isReady && this.#title !== "") {
      this.panel.title = this.#title;
    }
  }

  protected send(message: ToPage): void {
    if (!this.#isGone) {
      void this.panel.webview.postMessage(message);
    }
  }

  /** Add to the view a part that the page gets again whenever it is loaded. */
  protected add(part: ToPage): void {
    this.#outbox.add(part);
  }

  /** Send a message once, as soon as the page shows its view. */
  sendOnceLoaded(message: ToPage): void {
    this.#outbox.once(message);
  }

  /** Show an error; `again` means that the page shows nothing current. */
  protected complain(sentence: string, again: boolean, remedies: readonly Remedy[] = []): void {
    this.#complain({ kind: "trouble", sentence: plain(sentence), again, gone: false, remedies });
  }

  /** Show a refusal with its buttons. */
  protected refuse(error: unknown, again: boolean): void {
    this.#refusal = error;
    const down = whyDown(this.app.server.state);
    if (down !== null && error instanceof Unanswered) {
      this.complain(down, again); // the answer may fail after the exit was reported
      return;
    }
    const { sentence, remedies } = errorWords(error, this.canForce);
    if (again && codeOf(error) === "unknown_session") {
      this.#complain({ kind: "trouble", sentence, again, gone: true, remedies: [] });
    } else {
      this.complain(sentence, again, remedies);
    }
  }

  #complain(error: ToPage): void {
    this.#outbox.complain(error);
  }

  get isVisible(): boolean {
    return this.panel.visible;
  }

  get column(): vscode.ViewColumn | undefined {
    return this.panel.viewColumn;
  }

  reveal(preserveFocus = false): void {
    this.panel.reveal(undefined, preserveFocus);
  }

  close(): void {
    this.panel.dispose();
  }

  async #receive(message: FromPage | null): Promise<void> {
    try {
      if (message?.kind === "ready") {
        this.#isReady = true;
        this.#entitle();
        this.#outbox.listens();
      } else if (message?.kind === "again") {
        await awake(this.app.server);
        await this.look();
      } else if (message?.kind === "remedy" && REMEDIES[message.remedy].command !== null) {
        await remedied(message.remedy, this.#refusal);
      } else if (message !== null) {
        await this.handle(message);
      }
    } catch (error) {
      this.refuse(error, false);
    }
  }

  #follow(changes: Changes): void {
    const { state } = this.app.server;
    const down = whyDown(state);
    if (down !== null) {
      this.complain(down, true);
    } else if (state.kind === "ready" && this.panel.visible) {
      if (changes === null || this.concerns(changes)) {
        void this.changed();
      }
    }
  }
}

/** Quiet period before a session that Codex is writing is read again. */
const RESTED_MS = 1000;

/** A page with the content of one request; a new choice cancels the previous request. */
export abstract class AnsweredPage extends Page {
  #resting: NodeJS.Timeout | undefined;
  #asking = new vscode.CancellationTokenSource();
  #isAsking = false;

  /** Request the page's content and its tab title; null if there is nothing to show. */
  protected abstract ask(
    token: vscode.CancellationToken,
  ): Promise<readonly [title: string, view: ToPage] | null>;

  protected override async look(): Promise<void> {
    this.#asking.cancel();
    this.#asking = new vscode.CancellationTokenSource();
    const { token } = this.#asking;
    const busy = { location: vscode.ProgressLocation.Window, title: "Reading the session" };
    this.#isAsking = true;
    try {
      await answering(this.app.server);
      const found = await vscode.window.withProgress(busy, () => this.ask(token));
      if (found !== null && !token.isCancellationRequested) {
        this.show(...found);
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.refuse(error, true);
      }
    } finally {
      if (token === this.#asking.token) {
        this.#isAsking = false;
      }
    }
  }

  /** Request again after a quiet period; a slow request finishes first, so that the page fills. */
  protected override changed(): void {
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => {
      this.#isAsking ? this.changed() : void this.look();
    }, RESTED_MS);
  }

  protected override leave(): void {
    clearTimeout(this.#resting);
    this.#asking.cancel();
  }
}

/** The tabs of one kind; they come back when the window is loaded again. */
export class Tabs<K extends string, P extends Page> implements vscode.Disposable {
  readonly #app: App;
  readonly #folder: string;
  readonly #icon: { readonly light: vscode.Uri; readonly dark: vscode.Uri };
  readonly #name: keyof typeof TYPES;
  readonly #made: new (
    tab: Tab<K>,
  ) => P;
  readonly #open = new Map<string, P>();
  readonly #serializer: vscode.Disposable;

  /** `names` lists the ids that a page keeps. */
  constructor(
    app: App,
    extension: vscode.Uri,
    name: keyof typeof TYPES,
    names: readonly K[],
    made: new (tab: Tab<K>) => P,
  ) {
    this.#app = app;
    this.#folder = join(extension.fsPath, "dist", "webview");
    const icon = (name: string) => vscode.Uri.joinPath(extension, "extension", "media", name);
    this.#icon = { light: icon("tab-light.svg"), dark: icon("tab-dark.svg") };
    this.#name = name;
    this.#made = made;
    this.#serializer = vscode.window.registerWebviewPanelSerializer(this.#type, {
      deserializeWebviewPanel: async (panel, kept: unknown) => {
        const ids = readState(kept, names);
        if (ids === null || this.#open.has(keyOf(ids))) {
          panel.dispose();
        } else {
          this.#openIn(panel, ids, true);
        }
      },
    });
  }

  /** Show or open a tab; with `insteadOf`, it replaces that tab and does not take the focus. */
  open(
    title: string,
    ids: Ids<K>,
    insteadOf?: P,
    preserveFocus = insteadOf !== undefined,
    column = insteadOf?.column ?? vscode.ViewColumn.Active,
  ): P {
    const open = this.find(ids);
    insteadOf?.reveal(true); // a new tab opens next to the active one
    open?.reveal(preserveFocus);
    const place = { viewColumn: column, preserveFocus };
    // Keep the page's state while another tab is in front.
    const looks = { retainContextWhenHidden: true };
    const made = () => vscode.window.createWebviewPanel(this.#type, harmless(title), place, looks);
    return open ?? this.#openIn(made(), ids, false);
  }

  find(ids: Ids<K>): P | undefined {
    return this.#open.get(keyOf(ids));
  }

  dispose(): void {
    this.#serializer.dispose();
  }

  get #type(): string {
    return TYPES[this.#name];
  }

  #openIn(panel: vscode.WebviewPanel, ids: Ids<K>, isRestored: boolean): P {
    const { webview } = panel;
    panel.iconPath = this.#icon;
    webview.options = { enableScripts: true, enableForms: true, localResourceRoots: [] };
    const load = () => {
      webview.html = html(this.#folder, this.#name, ids);
    };
    const gone = () => this.#open.delete(keyOf(ids));
    const page = new this.#made({ app: this.#app, panel, ids, isRestored, load, gone });
    this.#open.set(keyOf(ids), page);
    page.open();
    return page;
  }
}

/** Inline the page's style and script: fetched ones would arrive after its content. */
function html(folder: string, name: keyof typeof TYPES, ids: Ids<string>): string {
  const script = scriptOf(name);
  const part = (file: string) => readFileSync(join(folder, file), "utf8");
  const nonce = randomBytes(24).toString("base64url");
  const policy = [
    "default-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
  ].join("; ");
  // As plain text the parsers of the conversation delay nothing; the script runs them later.
  const parsers = () =>
    `<script type="text/plain" nonce="${nonce}">${part("parsers.js")}</script>\n`;
  const language = vscode.env.language.replace(/[^\w-]/g, "");
  return `<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">${STYLES[script].map(part).join("")}</style>
<title>${script}</title>
</head>
<body>
<main id="page" class="${script}" data-ids="${attribute(JSON.stringify(ids))}"><p class="quiet" role="status">Reading the session…</p>${SKELETON}</main>
${script === "session" ? parsers() : ""}<script nonce="${nonce}">${part(`${script}.js`)}</script>
</body>
</html>`;
}

function attribute(text: string): string {
  return text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
}
