/** A session as it was at the end of a turn: view text and checkpoint, as documents and compared. */

import * as vscode from "vscode";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import { VIEW_LANGUAGE } from "./documents.ts";
import { comparisonTitle, inOrder, type Place } from "./model/comparing.ts";
import { fileName, plain, subject } from "./model/text.ts";
import {
  type Difference,
  DiffRequest,
  type SessionSummary,
  ShowRequest,
  ViewRequest,
} from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";

/** The session stands in the query, the turn in the fragment; without one it is now. */
const STATE_SCHEME = "codex-checkpoints-state";

/** What is shown of a state; each is an authority of the scheme. */
export type Shape = "view" | "checkpoint";

export class States implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#emitter.event;
  readonly #server: Server;
  readonly #subscriptions: vscode.Disposable[];

  constructor(server: Server, feed: ChangeFeed) {
    this.#server = server;
    this.#subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(STATE_SCHEME, this),
      feed.onDidChange((changes) => {
        for (const { uri } of vscode.workspace.textDocuments) {
          const isOurs = uri.scheme === STATE_SCHEME && server.state.kind === "ready";
          if (isOurs && (changes === null || changes.has(uri.query))) {
            this.#emitter.fire(uri);
          }
        }
      }),
    ];
  }

  /** Open one in the editor. */
  async open(shape: Shape, session: SessionSummary, place: Place): Promise<void> {
    const document = await opened(addressOf(shape, session, place));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Show the views of two states side by side; the title tells how much differs. */
  async compare(session: SessionSummary, one: Place, other: Place): Promise<void> {
    const [left, right] = inOrder(one, other);
    const found = await this.#difference(left, right);
    const name = fileName(subject(session));
    const documents = await Promise.all(
      [left, right].map((place) => opened(addressOf("view", session, place))),
    );
    await vscode.commands.executeCommand(
      "vscode.diff",
      ...documents.map(({ uri }) => uri),
      comparisonTitle(name, left, right, found),
      { preview: true },
    );
  }

  async provideTextDocumentContent(
    uri: vscode.Uri,
    token: vscode.CancellationToken,
  ): Promise<string> {
    const asked = { sessionId: uri.query, turnId: uri.fragment === "" ? null : uri.fragment };
    try {
      if (uri.authority === "checkpoint") {
        const { text } = await this.#server.request(ShowRequest, asked, token);
        return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
      }
      return (await this.#server.request(ViewRequest, { ...asked, caps: null }, token)).text;
    } catch (error) {
      return `${plain(saysRefusal(error))}\n`;
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#emitter).dispose();
  }

  /** What differs, be it between turns of one session or of two. */
  async #difference(left: Place, right: Place): Promise<Difference | null> {
    const { sessionId, turnId: fromTurnId } = left;
    const { sessionId: toSessionId, turnId: toTurnId } = right;
    return this.#server.request(DiffRequest, { sessionId, fromTurnId, toTurnId, toSessionId });
  }
}

async function opened(uri: vscode.Uri): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uri);
  return uri.authority === "view"
    ? vscode.languages.setTextDocumentLanguage(document, VIEW_LANGUAGE)
    : document;
}

function addressOf(shape: Shape, session: SessionSummary, place: Place): vscode.Uri {
  const name = fileName(subject(session));
  const end = shape === "view" ? "view.txt" : "checkpoint.json";
  return vscode.Uri.from({
    scheme: STATE_SCHEME,
    authority: shape,
    path: `/${name} – ${fileName(place.words)} – ${end}`,
    query: place.sessionId,
    fragment: place.turnId ?? "",
  });
}
