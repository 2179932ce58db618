/** View text, checkpoint JSON and doctor report as read-only documents of our own scheme. */

import * as vscode from "vscode";
import type { ChangeFeed, Changes } from "./changes.ts";
import type { Server } from "./client.ts";
import { doctorText } from "./model/doctor.ts";
import { historyText } from "./model/history.ts";
import { lossesText } from "./model/losses.ts";
import { fileName, plain, subject } from "./model/text.ts";
import { Told } from "./model/told.ts";
import {
  CompactPreviewRequest,
  DoctorRequest,
  HistoryRequest,
  LossesRequest,
  RecordRequest,
  type SessionSummary,
  ShowRequest,
  ViewRequest,
} from "./protocol.ts";
import { saysRefusal } from "./refusals.ts";

export const SCHEME = "codex-checkpoints";

/** Lines wrap in it, and nothing covers their ends; package.json says so. */
export const VIEW_LANGUAGE = "codex-checkpoint-view";

/** What can be shown; each is an authority of the scheme, the session stands in the query. */
export type Document = "view" | "json" | "losses" | "doctor";

/** A record of a session that is cited: it never changes, so it is not asked for again. */
const RECORD = "record";

/** What the model of a session sees now, and what it would see after a compaction. */
const [NOW, THEN] = ["now", "then"];

/** A text that was told once. */
const TOLD = "told";

/** These stay as they were when they were opened. */
const FIXED = new Set([RECORD, TOLD, NOW, THEN]);

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#emitter.event;
  readonly #server: Server;
  readonly #subscriptions: vscode.Disposable[];
  readonly #told = new Told();
  /** Those that nobody could answer, by their addresses. */
  readonly #owed = new Set<string>();

  constructor(server: Server, feed: ChangeFeed) {
    this.#server = server;
    this.#subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      feed.onDidChange((changes) => this.#refresh(changes)),
    ];
  }

  /** Open one in the editor; what is open already is shown, whatever it is called by now. */
  async open(document: Document, session: SessionSummary | null): Promise<void> {
    const id = session?.sessionId ?? "";
    const there = vscode.workspace.textDocuments.find(
      ({ uri, isClosed }) =>
        uri.scheme === SCHEME && uri.authority === document && uri.query === id && !isClosed,
    );
    const opened = await vscode.workspace.openTextDocument(
      there?.uri ?? addressOf(document, session),
    );
    if (document === "view" || document === "losses") {
      await vscode.languages.setTextDocumentLanguage(opened, VIEW_LANGUAGE);
    }
    await vscode.window.showTextDocument(opened, { preview: true });
  }

  /** Open a record that is cited as evidence. */
  async openRecord(session: SessionSummary, ref: string): Promise<void> {
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      authority: RECORD,
      path: `/${fileName(ref)} – record.json`,
      query: session.sessionId,
      fragment: ref,
    });
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  /** Open a text that nobody could be asked for again. */
  async openText(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      authority: TOLD,
      path: `/${name}.txt`,
      query: this.#told.keep(text),
    });
    const opened = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(opened, VIEW_LANGUAGE);
    await vscode.window.showTextDocument(opened, { preview: true });
  }

  /** Show what the model sees now beside what it would see after a compaction. */
  async compareHistories(session: SessionSummary): Promise<void> {
    const name = fileName(subject(session));
    const address = (authority: string, path: string) =>
      vscode.Uri.from({ scheme: SCHEME, authority, path, query: session.sessionId });
    const [now, then] = [
      address(NOW, `/${name} – now.txt`),
      address(THEN, `/${name} – compacted.txt`),
    ] as const;
    // Who compares again wants what is so by now, also where both are still open.
    this.#emitter.fire(now);
    this.#emitter.fire(then);
    await vscode.commands.executeCommand("vscode.diff", now, then, `${name}: now ↔ compacted`, {
      preview: true,
    });
  }

  async provideTextDocumentContent(
    uri: vscode.Uri,
    token: vscode.CancellationToken,
  ): Promise<string> {
    const address = uri.toString();
    try {
      const text = await this.#textOf(uri, token);
      this.#owed.delete(address);
      return text;
    } catch (error) {
      this.#owed.add(address);
      return `${plain(saysRefusal(error))}\n`;
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#emitter).dispose();
  }

  async #textOf(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const sessionId = uri.query;
    if (uri.authority === "doctor") {
      return doctorText(await this.#server.request(DoctorRequest, {}, token));
    }
    if (uri.authority === "json") {
      const shown = await this.#server.request(ShowRequest, { sessionId, turnId: null }, token);
      return `${JSON.stringify(JSON.parse(shown.text), null, 2)}\n`;
    }
    if (uri.authority === "losses") {
      const { items } = await this.#server.request(LossesRequest, { sessionId }, token);
      return lossesText(items);
    }
    if (uri.authority === RECORD) {
      const ref = uri.fragment;
      return (await this.#server.request(RecordRequest, { sessionId, ref }, token)).text;
    }
    if (uri.authority === TOLD) {
      const gone = "This text was told once and was not kept. Ask for it again.";
      return this.#told.text(uri.query) ?? `${gone}\n`;
    }
    if (uri.authority === NOW) {
      const { items } = await this.#server.request(HistoryRequest, { sessionId }, token);
      return historyText(items);
    }
    if (uri.authority === THEN) {
      const wish = { sessionId, strategy: "checkpoint", placement: "manual", force: true };
      const would = { ...wish, into: "new", workDoneToken: null };
      const { replacement } = await this.#server.request(CompactPreviewRequest, would, token);
      return historyText(replacement);
    }
    const asked = { sessionId, turnId: null, caps: null };
    return (await this.#server.request(ViewRequest, asked, token)).text;
  }

  /** Only what is open asks again; while the server is away it stays as it is. */
  #refresh(changes: Changes): void {
    if (this.#server.state.kind !== "ready") {
      return;
    }
    for (const { uri } of vscode.workspace.textDocuments) {
      const concerns = changes === null || changes.has(uri.query) || uri.authority === "doctor";
      const mayChange = !FIXED.has(uri.authority) || this.#owed.has(uri.toString());
      if (uri.scheme === SCHEME && concerns && mayChange) {
        this.#emitter.fire(uri);
      }
    }
  }
}

function addressOf(document: Document, session: SessionSummary | null): vscode.Uri {
  const name = session === null ? "" : fileName(subject(session));
  const paths = {
    view: `/${name} – view.txt`,
    json: `/${name} – checkpoint.json`,
    losses: `/${name} – losses.txt`,
    doctor: "/Codex Checkpoints – doctor.txt",
  };
  return vscode.Uri.from({
    scheme: SCHEME,
    authority: document,
    path: paths[document],
    query: session?.sessionId ?? "",
  });
}
