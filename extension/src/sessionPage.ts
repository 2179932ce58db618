/** The session page: one tab for a session, which follows it while Codex writes it (PAG-4). */

import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import { answering, awake } from "./client.ts";
import { resume } from "./compaction.ts";
import { onTurn } from "./markers.ts";
import { titleOf } from "./model/branches.ts";
import { type Checkpoint, checkpointNodes } from "./model/checkpoint.ts";
import { lineagePicture } from "./model/lineage.ts";
import { labelOf } from "./model/markers.ts";
import { PictureFirst } from "./model/paced.ts";
import type { FromPage } from "./model/pages.ts";
import {
  keptLists,
  pageEvent,
  pageRows,
  type SessionPageState,
  type SessionView,
  sessionPageState,
} from "./model/sessionPage.ts";
import { whyDown } from "./model/status.ts";
import { cut, dotted, folderName, plain, subject } from "./model/text.ts";
import { Page, pagesAt, SessionTabs } from "./panel.ts";
import {
  BranchesRequest,
  DigestRequest,
  LineageRequest,
  type Loss,
  LossesRequest,
  MarksRequest,
  NotesRequest,
  type SearchHit,
  SessionRequest,
  type SessionSummary,
  ShowRequest,
  TimelineRequest,
  TranscriptRequest,
} from "./protocol.ts";
import { errorText } from "./requests.ts";

const TYPE = "codexCheckpoints.sessionPage";

/** A session that Codex writes is asked for at most so often. */
const PAUSE_MS = 150;

/** The session pages of this window, one for a session. */
export function sessionPages(app: App, extension: vscode.Uri): SessionTabs<SessionPageState> {
  const folder = pagesAt(extension);
  return new SessionTabs(TYPE, sessionPageState, (panel, { sessionId }, gone) => {
    return new SessionPage(app, folder, panel, sessionId, gone).page;
  });
}

/** A second click on a row within this time makes both a double click. */
const DOUBLE_MS = 500;

export function sessionPageCommands(app: App, pages: SessionTabs<SessionPageState>): Commands {
  let clicked = { id: "", at: 0 };
  return {
    openSessionPage: onSession(app, async (session) => {
      openPage(pages, session);
    }),
    openTranscript: onSession(app, async (session) => {
      openPage(pages, session).sendBehind({ kind: "place", turn: null, seq: null });
    }),
    // A click brings a session into view; a double click opens it.
    clickSession: (session: SessionSummary) => {
      const { sessionId: id } = session;
      const at = Date.now();
      const isSecond = clicked.id === id && at - clicked.at < DOUBLE_MS;
      clicked = { id: isSecond ? "" : id, at };
      if (isSecond) {
        openPage(pages, session);
      }
    },
  };
}

function openPage(pages: SessionTabs<SessionPageState>, session: SessionSummary): Page {
  const { sessionId } = session;
  return pages.open(cut(subject(session), 40), { sessionId, turn: null });
}

/** Show what a search found in the page of its session. */
export function openAtHit(pages: SessionTabs<SessionPageState>) {
  return async (session: SessionSummary, { turn, seq }: SearchHit): Promise<void> => {
    const page = openPage(pages, session);
    if (turn !== null) {
      page.sendBehind({ kind: "place", turn, seq });
    }
  };
}

/** What is asked for last; meanwhile the page shows what it was before. */
type Below = Pick<SessionView, "digest" | "lineage"> & { readonly losses: readonly Loss[] | null };

class SessionPage {
  readonly page: Page;
  readonly #app: App;
  readonly #sessionId: string;
  readonly #filling: PictureFirst;
  #askingBelow = new vscode.CancellationTokenSource();
  #session: SessionSummary | null = null;
  #view: ((below: Below) => SessionView) | null = null;
  #below: Below = { digest: null, lineage: null, losses: null };

  constructor(
    app: App,
    folder: vscode.Uri,
    panel: vscode.WebviewPanel,
    sessionId: string,
    gone: () => void,
  ) {
    this.#app = app;
    this.#sessionId = sessionId;
    let waiting: NodeJS.Timeout | undefined;
    const later = () => {
      waiting ??= setTimeout(() => {
        waiting = undefined;
        void this.#filling.again();
      }, PAUSE_MS);
    };
    // A session that changes for the first time may be a new branch of this one.
    const others = new Set<string>();
    const concerns = (changes: ReadonlySet<string>) => {
      const isNew = [...changes].some((id) => !others.has(id));
      for (const id of changes) {
        others.add(id);
      }
      return isNew || changes.has(sessionId);
    };
    const subscriptions = [
      app.feed.onDidChange((changes) => {
        const down = whyDown(app.server.state);
        if (down !== null) {
          this.page.complain(down, true);
        } else if ((changes === null || concerns(changes)) && panel.visible) {
          later(); // a page that comes back asks by itself
        }
      }),
      panel.onDidChangeViewState(() => {
        if (!panel.visible) {
          this.#leave();
        }
      }),
    ];
    this.page = new Page(
      folder,
      "session",
      panel,
      (message) => void this.#handle(message),
      () => {
        vscode.Disposable.from(...subscriptions).dispose();
        clearTimeout(waiting);
        this.#leave();
        gone();
      },
    );
    this.#filling = new PictureFirst(
      () => this.#load(),
      () => this.#show(),
      () => this.#loadBelow(),
    );
  }

  #leave(): void {
    this.#filling.away();
    this.#askingBelow.cancel();
  }

  async #handle(message: FromPage): Promise<void> {
    const { documents, server } = this.#app;
    try {
      if (message.kind === "again") {
        await awake(server);
        return await this.#filling.again();
      }
      if (message.kind === "ready") {
        return await this.#filling.ready();
      }
      const session = this.#session;
      if (session === null) {
        return;
      }
      switch (message.kind) {
        case "record":
          return await documents.openRecord(session, message.ref, vscode.ViewColumn.Beside);
        case "conversation":
          return await this.#converse(message);
        case "turn":
          return await onTurn(this.#app, session, message.turnId, message.action);
        case "losses":
          return await documents.open("losses", session);
        case "resume":
          return await resume(this.#app, session);
        case "compact":
          return await run("compactSession", this.#sessionId);
        case "search":
          return await run("searchInSession", this.#sessionId);
        case "goTo":
          return await run("openSessionPage", message.sessionId);
        default:
      }
    } catch (error) {
      this.page.complain(errorText(error), false);
    }
  }

  async #load(): Promise<boolean> {
    try {
      await answering(this.#app.server);
      this.#view = await this.#askView();
      return true;
    } catch (error) {
      this.page.complain(errorText(error), true);
      return false;
    }
  }

  /** Ask for what stands below the picture, as long as it is in sight; show each part as it comes. */
  async #loadBelow(): Promise<void> {
    const { server } = this.#app;
    const sessionId = this.#sessionId;
    this.#askingBelow = new vscode.CancellationTokenSource();
    const { token } = this.#askingBelow;
    const part = async <K extends keyof Below>(name: K, asked: Promise<Below[K]>) => {
      const found = await asked; // the others may come meanwhile
      this.#below = { ...this.#below, [name]: found };
      this.#filling.show();
    };
    const isCompacted = this.#session?.compactions !== 0;
    const whole = { sessionId, turnId: null, tokens: null };
    const ask = async () => (await server.request(LossesRequest, { sessionId }, token)).items;
    const tree = async () => lineagePicture(await server.request(LineageRequest, { sessionId }));
    try {
      await Promise.all([
        part("lineage", tree()),
        part("losses", isCompacted ? ask() : Promise.resolve(null)),
        part("digest", server.request(DigestRequest, whole, token)),
      ]);
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.page.complain(errorText(error), true);
      }
    }
  }

  async #converse({ turnId, offset }: { turnId: string; offset: number }): Promise<void> {
    const asked = { sessionId: this.#sessionId, turnId, offset };
    const part = await this.#app.server.request(TranscriptRequest, asked);
    this.page.send({ kind: "conversation", offset, part });
  }

  #show(): void {
    const view = this.#view?.(this.#below);
    if (view !== undefined) {
      this.page.panel.title = cut(view.name, 40);
      this.page.send(view);
    }
  }

  async #askView(): Promise<(below: Below) => SessionView> {
    const { server } = this.#app;
    const sessionId = this.#sessionId;
    const [detail, timeline, shown, notes, marks, branches] = await Promise.all([
      server.request(SessionRequest, { sessionId }),
      server.request(TimelineRequest, { sessionId }),
      server.request(ShowRequest, { sessionId, turnId: null }),
      server.request(NotesRequest, { sessionId }),
      server.request(MarksRequest, { sessionId }),
      server.request(BranchesRequest, { sessionId }),
    ]);
    const { summary } = detail;
    this.#session = summary;
    const checkpoint: Checkpoint = JSON.parse(shown.text);
    const labels = new Map([
      ...marks.items.map((marker) => [marker.checkpointId, labelOf(marker)] as const),
      ...branches.items.map(
        (branch) => [branch.sessionId, titleOf(branch.title, branch.sessionId)] as const,
      ),
    ]);
    return ({ digest, lineage, losses }) => ({
      kind: "session",
      sessionId,
      name: cut(subject(summary), 80),
      about: dotted(
        summary.live ? "running" : "",
        plain(summary.model ?? ""),
        folderName(plain(summary.cwd ?? "")),
      ),
      rows: pageRows(timeline.turns, detail.turns, timeline.merged),
      events: timeline.events.map((event) =>
        pageEvent(event, labels.get(event.id ?? "") ?? "", losses),
      ),
      merged: timeline.merged,
      window: summary.contextWindow,
      trigger: summary.contextWindow === null ? null : detail.budget.trigger,
      digest,
      lineage,
      kept: keptLists(checkpointNodes(checkpoint, notes.items, summary, Date.now())),
    });
  }
}

function run(command: string, sessionId: string): Thenable<void> {
  return vscode.commands.executeCommand(`codexCheckpoints.${command}`, { sessionId });
}
