/** Read-only documents about sessions, under custom URI schemes. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { FileChange, SessionSummary } from "../client/protocol.ts";
import { errorText } from "../client/requests.ts";
import { anchorsIn } from "../compaction/model/digest.ts";
import { comparisonTitle, inOrder, type Place } from "../markers/model/texts.ts";
import { sidesOf } from "../page/model/changes.ts";
import { isPath } from "../sessions/model/rows.ts";
import type { ChangeFeed, Changes } from "../sessions/sessionInView.ts";
import { changesOf } from "./files.ts";
import { historyText, KeptTexts, type ShownFile, shownFileText } from "./model/documents.ts";
import { dotted, fileName, harmless, plain, subject } from "./model/text.ts";

/** A URI names the document in its authority and the session in its query. */
const SCHEME = "codex-checkpoints";

/** The same with a turn in the fragment: the session at the turn's end; no turn means now. */
const STATE_SCHEME = "codex-checkpoints-state";

/** The language of wrapped texts; package.json sets its options. */
const VIEW_LANGUAGE = "codex-checkpoint-view";

/** The sides of changed files; the fragment names the file and the turns. */
const CHANGED = "changed";

const WRAPPED = new Set(["view"]);

/** Documents that are not updated once they are open. */
const FIXED = new Set(["part", CHANGED, "now", "then"]);

/** The document whose anchors are links. */
const QUOTING = "then";

export class Documents
  implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable
{
  readonly #emitter = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#emitter.event;
  readonly #server: Server;
  readonly #subscriptions: vscode.Disposable[];
  readonly #texts = new KeptTexts();
  /** URIs of documents that show an error instead of their text. */
  readonly #owed = new Set<string>();

  constructor(server: Server, feed: ChangeFeed) {
    this.#server = server;
    this.#subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.registerTextDocumentContentProvider(STATE_SCHEME, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: SCHEME }, this),
      // The editor itself opens the link target.
      vscode.workspace.onDidOpenTextDocument((document) => wrap(document).catch(() => {})),
      feed.onDidChange((changes) => this.#refresh(changes)),
    ];
  }

  /** Open the current or an earlier checkpoint as JSON; reuse a document open under an old name. */
  async openJson(session: SessionSummary, place: Place | null = null): Promise<void> {
    if (place !== null) {
      await show(stateAddress("json", session, place));
      return;
    }
    const query = session.sessionId;
    const there = vscode.workspace.textDocuments.find(
      ({ uri, isClosed }) =>
        uri.scheme === SCHEME && uri.authority === "json" && uri.query === query && !isClosed,
    );
    const path = `/${fileName(subject(session))} – checkpoint.json`;
    await show(there?.uri ?? address("json", path, query));
  }

  /** Return a URI for a whole or partial file text that only this window has. */
  part(name: string, text: string): vscode.Uri {
    return address("part", `/${plain(name).replace(/^[\\/]+/, "")}`, this.#texts.keep(text));
  }

  /**
   * Show files as diffs in one tab, followed by other texts if any; `of` names the turns that
   * changed them.
   */
  async showFiles(
    title: string,
    of: Omit<ShownFile, "uri">,
    files: readonly FileChange[],
    ...others: readonly (readonly [vscode.Uri, vscode.Uri, vscode.Uri])[]
  ): Promise<void> {
    const diffs = files.map((file) => {
      const { left, right, isNew } = this.#sides(of, file);
      return [right, isNew ? undefined : left, file.kind === "deleted" ? undefined : right];
    });
    await vscode.commands.executeCommand("vscode.changes", title, [...diffs, ...others]);
  }

  /** Show a file as a diff; `of` names its turns for the title. */
  async showFile(of: Omit<ShownFile, "uri">, file: FileChange, words: string): Promise<void> {
    const { left, right } = this.#sides(of, file);
    const name = right.path.replace(/^\//, "");
    await compare(left, right, harmless(dotted(name, words)));
  }

  /** Return the URIs of the two sides of a diff. */
  #sides(of: Omit<ShownFile, "uri">, file: FileChange) {
    const { before, after, about } = sidesOf(file);
    // A session named by a path has no files on this machine to restore.
    const authority = isPath(of.sessionId) ? "part" : CHANGED;
    const old = file.movedFrom ?? file.uri; // restoring a moved file puts it back at its old path
    const fragment = shownFileText({ ...of, uri: old });
    const side = (uri: string, text: string) =>
      this.part(`${uri}${about}`, text).with({ authority, fragment });
    return {
      left: side(old, before),
      right: side(file.uri, after),
      isNew: file.kind === "created" && before === "",
    };
  }

  /** Compare the views of two states; the title counts the differences. */
  async compareStates(session: SessionSummary, one: Place, other: Place): Promise<void> {
    const [left, right] = inOrder(one, other);
    const { sessionId } = session;
    const [fromTurnId, turnId] = [left.turnId, right.turnId];
    const asked = { sessionId, fromTurnId, toTurnId: turnId };
    const found = await this.#server.request("diff", asked);
    const title = comparisonTitle(fileName(subject(session)), left, right, found);
    const before = stateAddress("view", session, left);
    const after = stateAddress("view", session, right);
    await Promise.all([opened(before), opened(after)]);
    const between = { sessionId, turnId, afterTurnId: fromTurnId, uri: null };
    const files = await changesOf(this.#server, session, between);
    if (files.length === 0) {
      await compare(before, after, title);
    } else {
      await this.showFiles(title, between, files, [after, before, after]);
    }
  }

  /** Compare the model's current context with its context after a digest of this budget. */
  async compareHistories(session: SessionSummary, budget: number | null): Promise<void> {
    const name = fileName(subject(session));
    const now = address("now", `/${name} – now.txt`, session.sessionId);
    const path = `/${name} – compacted.txt`;
    const then = address("then", path, session.sessionId, budget === null ? "" : String(budget));
    // Update both sides if they are open already.
    this.#emitter.fire(now);
    this.#emitter.fire(then);
    await compare(now, then, `${name}: now ↔ compacted`);
  }

  async provideTextDocumentContent(
    uri: vscode.Uri,
    token: vscode.CancellationToken,
  ): Promise<string> {
    const key = uri.toString();
    try {
      const text = await this.#textOf(uri, token);
      this.#owed.delete(key);
      return text;
    } catch (error) {
      this.#owed.add(key);
      return `${plain(errorText(error))}\n`;
    }
  }

  /** Link each anchor of a digest to its record. */
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const { authority, query } = document.uri;
    if (authority !== QUOTING) {
      return [];
    }
    return anchorsIn(document.getText()).map(({ line, from, to, ref }) => {
      const range = new vscode.Range(line, from, line, to);
      const target = vscode.Uri.from({
        scheme: "command",
        path: "codexCheckpoints.openRecord",
        query: JSON.stringify([query, ref]),
      });
      const link = new vscode.DocumentLink(range, target);
      link.tooltip = "Show Record";
      return link;
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#emitter).dispose();
  }

  async #textOf(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const server = this.#server;
    const { query: sessionId, fragment } = uri;
    const state = { sessionId, turnId: fragment === "" ? null : fragment };
    switch (uri.authority) {
      case "json": {
        const { text } = await server.request("show", state, token);
        return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
      }
      case "part":
      case CHANGED: {
        const gone = "This text was shown once and was not kept. Ask for it again.\n";
        return this.#texts.text(uri.query) ?? gone;
      }
      case "now":
        return historyText((await server.request("history", { sessionId }, token)).items);
      case "then": {
        const how = { strategy: "checkpoint", placement: "manual", force: true, into: "new" };
        const digestTokens = fragment === "" ? null : Number(fragment);
        const asked = { sessionId, ...how, digestTokens, workDoneToken: null };
        const { replacement } = await server.request("compactPreview", asked, token);
        return historyText(replacement);
      }
      default:
        return (await server.request("view", { ...state, caps: null }, token)).text;
    }
  }

  /** Update open documents; without a server they stay as they are. */
  #refresh(changes: Changes): void {
    if (this.#server.state.kind !== "ready") {
      return;
    }
    for (const { uri } of vscode.workspace.textDocuments) {
      const isOurs = uri.scheme === SCHEME || uri.scheme === STATE_SCHEME;
      const concerns = changes === null || changes.has(uri.query);
      const mayChange = !FIXED.has(uri.authority) || this.#owed.has(uri.toString());
      if (isOurs && concerns && mayChange) {
        this.#emitter.fire(uri);
      }
    }
  }
}

/** Check whether a URI is one side of a changed file's diff. */
export function isChangedFile({ scheme, authority }: vscode.Uri): boolean {
  return scheme === SCHEME && authority === CHANGED;
}

function address(authority: string, path: string, query: string, fragment = ""): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, authority, path, query, fragment });
}

function stateAddress(shape: "view" | "json", session: SessionSummary, place: Place): vscode.Uri {
  const end = shape === "view" ? "view.txt" : "checkpoint.json";
  const path = `/${fileName(subject(session))} – ${fileName(place.words)} – ${end}`;
  return address(shape, path, place.sessionId, place.turnId ?? "").with({ scheme: STATE_SCHEME });
}

async function opened(uri: vscode.Uri): Promise<vscode.TextDocument> {
  return wrap(await vscode.workspace.openTextDocument(uri));
}

/** Turn on word wrap for a text with long lines, however it was opened. */
async function wrap(document: vscode.TextDocument): Promise<vscode.TextDocument> {
  const { uri, languageId } = document;
  const isOurs = uri.scheme === SCHEME || uri.scheme === STATE_SCHEME;
  return isOurs && WRAPPED.has(uri.authority) && languageId !== VIEW_LANGUAGE
    ? vscode.languages.setTextDocumentLanguage(document, VIEW_LANGUAGE)
    : document;
}

async function show(uri: vscode.Uri, viewColumn = vscode.ViewColumn.Active): Promise<void> {
  await vscode.window.showTextDocument(await opened(uri), { preview: true, viewColumn });
}

async function compare(left: unknown, right: unknown, title: string): Promise<void> {
  await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true });
}
