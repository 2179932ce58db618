/** Webview pages: they load no foreign content and use no markup from sessions. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { type FromPage, fromPage, type ToPage } from "./model/pages.ts";
import { harmless, plain } from "./model/text.ts";
import { errorWords, remedied } from "./requests.ts";

export type PageName = "preview" | "details" | "compaction" | "session";

export function pagesAt(extension: vscode.Uri): vscode.Uri {
  return vscode.Uri.joinPath(extension, "dist", "webview");
}

export class Page implements vscode.Disposable {
  readonly panel: vscode.WebviewPanel;
  readonly #folder: vscode.Uri;
  readonly #name: PageName;
  readonly #subscriptions: vscode.Disposable[];
  #isGone = false;
  /** Whether the page shows its session, and what it is sent as soon as it does. */
  #isFilled = false;
  #behind: ToPage | null = null;
  /** The last refusal, which a button of the page may mend. */
  #refusal: unknown = null;

  constructor(
    folder: vscode.Uri,
    name: PageName,
    panel: vscode.WebviewPanel,
    handle: (message: FromPage) => void,
    gone: () => void,
  ) {
    this.panel = panel;
    this.#folder = folder;
    this.#name = name;
    this.#subscriptions = [
      panel.webview.onDidReceiveMessage((value: unknown) => {
        const message = fromPage(value);
        if (message?.kind === "ready") {
          this.#isFilled = false;
        }
        if (message?.kind === "remedy" && message.remedy !== "force") {
          void remedied(message.remedy, this.#refusal);
        } else if (message !== null) {
          handle(message);
        }
      }),
      panel.onDidDispose(() => {
        this.#isGone = true;
        vscode.Disposable.from(...this.#subscriptions).dispose();
        gone();
      }),
      // A page that is hidden is thrown away, and begins anew when it comes back.
      panel.onDidChangeViewState(() => {
        this.#isFilled &&= panel.visible;
      }),
    ];
    const localResourceRoots = [folder];
    panel.webview.options = { enableScripts: true, enableForms: true, localResourceRoots };
    this.restart();
  }

  /** Load the page again; it sends `ready`. */
  restart(): void {
    this.panel.webview.html = html(this.panel.webview, this.#folder, this.#name);
  }

  send(message: ToPage): void {
    if (this.#isGone) {
      return;
    }
    void this.panel.webview.postMessage(message);
    if (message.kind === "session") {
      this.#isFilled = true;
      const behind = this.#behind;
      this.#behind = null;
      if (behind !== null) {
        this.send(behind);
      }
    }
  }

  /** Send something that only a page that shows its session understands. */
  sendBehind(message: ToPage): void {
    if (this.#isFilled) {
      this.send(message);
    } else {
      this.#behind = message;
    }
  }

  complain(sentence: string, again: boolean): void {
    this.send({ kind: "trouble", sentence: plain(sentence), again, remedies: [] });
  }

  /** Show a refusal with its buttons. */
  refuse(error: unknown, again: boolean): void {
    this.#refusal = error;
    const { sentence, remedies } = errorWords(error);
    this.send({ kind: "trouble", sentence: plain(sentence), again, remedies });
  }

  dispose(): void {
    this.panel.dispose();
  }
}

/** The tabs of one kind, one for a session; they come back when the window is loaded again. */
export class SessionTabs<State extends { readonly sessionId: string }>
  implements vscode.Disposable
{
  readonly #type: string;
  readonly #make: (panel: vscode.WebviewPanel, state: State, gone: () => void) => Page;
  readonly #open = new Map<string, Page>();
  readonly #serializer: vscode.Disposable;

  constructor(
    type: string,
    read: (kept: unknown) => State | null,
    make: (panel: vscode.WebviewPanel, state: State, gone: () => void) => Page,
  ) {
    this.#type = type;
    this.#make = make;
    this.#serializer = vscode.window.registerWebviewPanelSerializer(type, {
      deserializeWebviewPanel: async (panel, kept: unknown) => {
        const state = read(kept);
        if (state === null || this.#open.has(state.sessionId)) {
          panel.dispose();
        } else {
          this.#openIn(panel, state);
        }
      },
    });
  }

  /** Show the tab of a session; open one if there is none. */
  open(title: string, state: State): Page {
    const open = this.#open.get(state.sessionId);
    open?.panel.reveal();
    return open ?? this.#openIn(openPanel(this.#type, title), state);
  }

  dispose(): void {
    this.#serializer.dispose();
  }

  #openIn(panel: vscode.WebviewPanel, state: State): Page {
    const gone = () => this.#open.delete(state.sessionId);
    const page = this.#make(panel, state, gone);
    this.#open.set(state.sessionId, page);
    return page;
  }
}

export function openPanel(viewType: string, title: string): vscode.WebviewPanel {
  const column = vscode.ViewColumn.Active;
  return vscode.window.createWebviewPanel(viewType, harmless(title), column, {});
}

function html(webview: vscode.Webview, folder: vscode.Uri, name: PageName): string {
  const at = (file: string) => webview.asWebviewUri(vscode.Uri.joinPath(folder, file)).toString();
  const nonce = randomBytes(24).toString("base64url");
  const policy = [
    "default-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
  ].join("; ");
  const language = vscode.env.language.replace(/[^\w-]/g, "");
  return `<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${at("pages.css")}">
<title>${name}</title>
</head>
<body>
<main id="page" class="${name}"><p class="waiting quiet" role="status">Reading the session…</p></main>
<script nonce="${nonce}" src="${at(`${name}.js`)}"></script>
</body>
</html>`;
}
