/** The session page: one tab per session, updated while Codex writes the session (PAG-4). */

import * as vscode from "vscode";
import { type Checkpoint, checkpointNodes } from "../checkpoint/model/rows.ts";
import { answering } from "../client/client.ts";
import { OneAtATime } from "../client/model/status.ts";
import type { Loss, SessionSummary, TurnEntry } from "../client/protocol.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { openLink } from "../common/links.ts";
import { runCommand } from "../common/messages.ts";
import { unpacked } from "../common/model/documents.ts";
import type { FromPage, ToPage } from "../common/model/pages.ts";
import { cut, dotted, folderName, plain, subject } from "../common/model/text.ts";
import { Page, type Tab, Tabs } from "../common/panel.ts";
import { readRecord } from "../common/records.ts";
import { resume } from "../compaction/commands.ts";
import { onTurn } from "../markers/commands.ts";
import { labelOf } from "../markers/model/texts.ts";
import { titleOf } from "../sessions/model/branches.ts";
import { showChange } from "./changes.ts";
import { begunFrom } from "./model/begun.ts";
import { lineagePicture } from "./model/lineage.ts";
import {
  keptLists,
  pageEvent,
  pageRows,
  refusedSentence,
  type SessionView,
  type Shared,
  wholeOf,
} from "./model/page.ts";

/** Minimum time between two requests for a session that Codex is writing. */
const PAUSE_MS = 150;

/** Slow requests are repeated after a pause of this many times their duration. */
const PAUSE_TIMES = 10;

/** The session pages of this window, one per session. */
export class SessionPages extends Tabs<"sessionId", SessionPage> {
  /** The session whose page the next preview replaces. */
  #previewed: string | null = null;

  constructor(app: App, extension: vscode.Uri) {
    super(app, extension, "session", ["sessionId"], SessionPage);
  }

  show(session: SessionSummary, insteadOf?: SessionPage): SessionPage {
    const { sessionId } = session;
    if (sessionId === this.#previewed) {
      this.#previewed = null;
    }
    return this.open(cut(subject(session), 40), { sessionId }, insteadOf);
  }

  /** Show a session in place of the last preview; the focus stays if `preserveFocus` is true. */
  preview(session: SessionSummary, preserveFocus = true): SessionPage {
    const { sessionId } = session;
    if (this.find({ sessionId }) !== undefined) {
      return this.open("", { sessionId }, undefined, preserveFocus);
    }
    const before = this.#previewed === null ? undefined : this.find({ sessionId: this.#previewed });
    const page = this.open(cut(subject(session), 40), { sessionId }, before, preserveFocus);
    this.#previewed = sessionId;
    before?.close();
    return page;
  }

  /** Show this session in the preview if that is visible. */
  follow(session: SessionSummary): void {
    const before = this.#previewed === null ? undefined : this.find({ sessionId: this.#previewed });
    if (before?.isVisible) {
      this.preview(session);
    }
  }

  /** Replace the open page of a session with another session's page; false if none is open. */
  replace(sessionId: string, by: SessionSummary): boolean {
    const before = this.find({ sessionId });
    if (before !== undefined) {
      this.show(by, before);
      before.close();
    }
    return before !== undefined;
  }
}

/** Two clicks on a row within this time are a double click. */
const DOUBLE_MS = 500;

export function sessionPageCommands(app: App): Commands {
  let clicked = { id: "", at: 0 };
  let enteredAt = 0;
  return {
    openSessionPage: onSession(app, async (session) => {
      app.pages.show(session);
    }),
    openTranscript: onSession(app, async (session) => {
      app.pages.show(session).sendOnceLoaded({ kind: "place", turn: null, seq: null, found: null });
    }),
    // The editor selects the focused row, and then runs its click command.
    openRow: async () => {
      enteredAt = Date.now();
      await vscode.commands.executeCommand("list.select");
    },
    // A click previews a session; a double click or Enter opens it.
    clickSession: (session: SessionSummary) => {
      const { sessionId: id } = session;
      const at = Date.now();
      const isSecond = clicked.id === id && at - clicked.at < DOUBLE_MS;
      clicked = { id: isSecond ? "" : id, at };
      // The page sends its requests first, since the user is waiting for it.
      if (isSecond || at - enteredAt < DOUBLE_MS) {
        app.pages.show(session);
      } else {
        app.pages.preview(session);
      }
      app.following.choose(session);
    },
  };
}

/** The parts that are requested last; until then the page shows the previous ones. */
type Below = Pick<SessionView, "digest" | "files" | "lineage"> & {
  readonly losses: readonly Loss[] | null;
};

export class SessionPage extends Page {
  /** The id of the session, kept across reloads. */
  protected readonly sessionId: string;
  /** A long session's digest takes seconds, so the picture is updated separately. */
  readonly #picture = new OneAtATime(() => this.#load());
  readonly #rest = new OneAtATime(() => this.#loadBelow());
  /** A session that changes for the first time may be a new branch of this one. */
  readonly #others = new Set<string>();
  #waiting: NodeJS.Timeout | undefined;
  #askingBelow = new vscode.CancellationTokenSource();
  #session: SessionSummary | null = null;
  #view: ((below: Below) => SessionView) | null = null;
  #below: Below = { digest: null, files: null, lineage: null, losses: null };
  #turns: readonly TurnEntry[] = [];
  /** The turns' changes, as of now and as of the shown files. */
  #done = { now: "", shown: "" };
  /** When the changed files are requested again; for a long session that is slow. */
  #filesDue = 0;
  #later: NodeJS.Timeout | undefined;
  /** The line of the last search hit that was shown; it may be far within a long record. */
  #foundLine: string | null = null;

  constructor(tab: Tab<"sessionId">) {
    super(tab);
    this.sessionId = tab.ids.sessionId;
  }

  /** The name by which the server finds the session: its id, or its file's path. */
  protected get key(): string {
    return this.sessionId;
  }

  /** Return the session as the page's actions get it. */
  protected asShown(session: SessionSummary): SessionSummary {
    return session;
  }

  /** The owner of a session whose copy in the remote is shown, else null. */
  protected get shared(): Shared | null {
    return null;
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    const isNew = [...changes].some((id) => !this.#others.has(id));
    for (const id of changes) {
      this.#others.add(id);
    }
    return isNew || changes.has(this.sessionId);
  }

  override sendOnceLoaded(message: ToPage): void {
    if (message.kind === "place") {
      this.#foundLine = message.found?.line ?? null;
    }
    super.sendOnceLoaded(message);
  }

  protected override changed(): void {
    this.#waiting ??= setTimeout(() => {
      this.#waiting = undefined;
      void this.look();
    }, PAUSE_MS);
  }

  protected override look(): Promise<void> {
    return this.#picture.run();
  }

  /** The list and the checkpoint show the session of the front page. */
  protected override activated(): void {
    if (this.#session !== null && this.panel.active) {
      this.app.following.choose(this.#session);
    }
  }

  protected override leave(): void {
    this.#askingBelow.cancel();
    clearTimeout(this.#waiting);
    clearTimeout(this.#later);
  }

  protected async handle(message: FromPage): Promise<unknown> {
    const session = this.#session;
    if (session === null) {
      return;
    }
    const { reports } = this.app;
    const { sessionId } = session;
    switch (message.kind) {
      case "record":
        return reports.openRecord(sessionId, message.ref, vscode.ViewColumn.Beside);
      case "conversation":
        return this.#converse(message);
      case "turn":
        return onTurn(this.app, session, message.turnId, message.action);
      case "change": {
        const turn = this.#turns.find(({ turnId }) => turnId === message.turnId) ?? null;
        return showChange(this.app, session, message.uri, turn);
      }
      case "planAtTurn":
        return this.#readPlan(message.turnId);
      case "link":
        return openLink(session, message.address);
      case "whole":
        return this.#readWhole(message.ref);
      case "losses":
        return reports.open("losses", { sessionId });
      case "resume":
        return resume(this.app, session);
      case "compact":
        return runCommand("compactSession", { sessionId });
      case "search":
        return runCommand("searchInSession", { sessionId });
      case "goTo":
        return runCommand("openSessionPage", { sessionId: message.sessionId });
      default:
        return undefined;
    }
  }

  async #load(): Promise<void> {
    try {
      await answering(this.app.server);
      const isFirst = this.#session === null;
      this.#view = await this.#askView();
      if (isFirst) {
        this.activated();
      }
      this.#showAll();
      void this.#rest.run();
    } catch (error) {
      this.refuse(error, true);
    }
  }

  /** Load the parts below the picture while they are visible; show each as it arrives. */
  async #loadBelow(): Promise<void> {
    const { server } = this.app;
    const sessionId = this.key;
    this.#askingBelow = new vscode.CancellationTokenSource();
    const { token } = this.#askingBelow;
    const part = async <K extends keyof Below>(name: K, asked: Promise<Below[K]>) => {
      const found = await asked; // other parts may arrive during the request
      this.#below = { ...this.#below, [name]: found };
      this.#showAll();
    };
    const isCompacted = this.#session?.compactions !== 0;
    const whole = { sessionId, turnId: null, tokens: null };
    const ask = async () => (await server.request("losses", { sessionId }, token)).items;
    const tree = async () => lineagePicture(await server.request("lineage", { sessionId }));
    try {
      const losses = isCompacted ? ask() : Promise.resolve(null);
      await Promise.all([part("lineage", tree()), part("losses", losses)]);
      // This takes seconds for a long session, and the conversation is requested meanwhile.
      await part("digest", server.request("digest", whole, token));
      if (this.#asksForFiles()) {
        const start = Date.now();
        const { now } = this.#done;
        const asked = { sessionId, turnId: null, afterTurnId: null, uri: null };
        await part(
          "files",
          server.request("changes", { ...asked, texts: false, bases: {} }, token),
        );
        this.#done = { ...this.#done, shown: now };
        this.#filesDue = Date.now() + PAUSE_TIMES * (Date.now() - start);
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.refuse(error, true);
      }
    }
  }

  /** Check whether to request the changed files now; if it is too early, schedule it. */
  #asksForFiles(): boolean {
    const { now, shown } = this.#done;
    const wait = this.#filesDue - Date.now();
    clearTimeout(this.#later);
    if (now !== shown && wait > 0) {
      this.#later = setTimeout(() => void this.#rest.run(), wait);
    }
    return now !== shown && wait <= 0;
  }

  async #converse({ turnId, offset }: { turnId: string; offset: number }): Promise<void> {
    const asked = { sessionId: this.key, turnId, offset };
    const part = await this.app.server.request("transcript", asked);
    this.send({ kind: "conversation", offset, part });
  }

  async #readPlan(turnId: string): Promise<void> {
    const shown = await this.app.server.request("show", { sessionId: this.key, turnId });
    const lists = keptLists(checkpointNodes(JSON.parse(shown.text), shown, []));
    const plan = lists.find(({ id }) => id === "plan") ?? null;
    this.send({ kind: "planAtTurn", turnId, plan });
  }

  async #readWhole(ref: string): Promise<void> {
    const found = await readRecord(this.app.server, this.key, ref, this.#foundLine);
    if (found !== null) {
      const { record, text, passage } = found;
      const shown = record.kind === "output" ? unpacked(text) : text;
      this.send(wholeOf(ref, shown, [...text].length, record.total, passage));
    }
  }

  #showAll(): void {
    const view = this.#view?.(this.#below);
    if (view !== undefined) {
      this.show(cut(view.name, 40), view);
    }
  }

  async #askView(): Promise<(below: Below) => SessionView> {
    const { server } = this.app;
    const sessionId = this.key;
    const [detail, timeline, shown, notes, marks, branches] = await Promise.all([
      server.request("session", { sessionId }),
      server.request("timeline", { sessionId }),
      server.request("show", { sessionId, turnId: null }),
      server.request("notes", { sessionId }),
      server.request("marks", { sessionId }),
      server.request("branches", { sessionId }),
    ]);
    const summary = this.asShown(detail.summary);
    const isBegun = timeline.turns.length === 0 && branches.source !== null;
    const windows = isBegun ? (await server.request("windows", { sessionId })).items : [];
    const begun = isBegun ? begunFrom(summary, branches, windows) : null;
    this.#session = summary;
    this.#turns = detail.turns;
    const work = timeline.turns.map(({ filesChanged, calls }) => [filesChanged, calls]);
    this.#done = { ...this.#done, now: JSON.stringify(work) };
    const checkpoint: Checkpoint = JSON.parse(shown.text);
    const labels = new Map([
      ...marks.items.map((marker) => [marker.checkpointId, labelOf(marker)] as const),
      ...branches.items.map(
        (branch) => [branch.sessionId, titleOf(branch.title, branch.sessionId)] as const,
      ),
    ]);
    return ({ digest, files, lineage, losses }) => ({
      kind: "session",
      sessionId: this.sessionId,
      shared: this.shared,
      refused: this.shared === null ? refusedSentence(summary) : "",
      seq: summary.seq,
      name: cut(subject(summary), 80),
      about: dotted(
        summary.live ? "running" : "",
        plain(summary.model ?? ""),
        folderName(plain(detail.summary.cwd ?? "")),
      ),
      folder: summary.cwd ?? "",
      rows: pageRows(timeline.turns, detail.turns, timeline.merged),
      events: timeline.events.map((event) =>
        pageEvent(event, labels.get(event.id ?? "") ?? "", losses),
      ),
      merged: timeline.merged,
      window: summary.contextWindow,
      trigger: summary.contextWindow === null ? null : detail.budget.trigger,
      digest,
      files,
      lineage,
      kept: keptLists(checkpointNodes(checkpoint, shown, notes.items)),
      begun,
    });
  }
}
