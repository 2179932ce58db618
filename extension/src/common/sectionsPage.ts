/** Pages made of sections from the server: reports, records, digests, the connection. */

import * as vscode from "vscode";
import { answering } from "../client/client.ts";
import type { PageLink, ShownPage } from "../client/protocol.ts";
import { longRequest } from "../client/requests.ts";
import { openSettings } from "../client/settings.ts";
import type { App } from "./app.ts";
import { openArtifact } from "./files.ts";
import { runCommand, showDone } from "./messages.ts";
import type { FromPage, ToPage } from "./model/pages.ts";
import { COMMANDS, PAGE_IDS, type PageIds, QUESTIONS, tabTitle } from "./model/sections.ts";
import { AnsweredPage, type Tab, Tabs } from "./panel.ts";

/** Pages without live updates: they are for reading and slow to make. */
const FIXED = new Set(["digest", "record", "connect", "disconnect", "import"]);

/** The open pages of this window. */
export class Reports implements vscode.Disposable {
  readonly #tabs: Tabs<keyof PageIds, SectionsPage>;
  /** The last opened record, which the next one replaces. */
  #record: PageIds | null = null;

  constructor(app: App, extension: vscode.Uri) {
    this.#tabs = new Tabs(app, extension, "sections", PAGE_IDS, SectionsPage);
  }

  open(kind: string, some: Partial<PageIds> = {}, column?: vscode.ViewColumn): SectionsPage {
    const ids = idsOf(kind, some);
    const before = kind === "record" ? this.#record : null;
    const old = before === null ? undefined : this.#tabs.find(before);
    const page = this.#tabs.open(FIRST[kind] ?? "Report", ids, undefined, false, column);
    if (kind === "record") {
      this.#record = ids;
      if (old !== undefined && old !== page) {
        old.close();
      }
    }
    return page;
  }

  /** Open a record by its number, or by the id of a message or a call. */
  openRecord(sessionId: string, name: string, column?: vscode.ViewColumn): void {
    this.open("record", { sessionId, name }, column);
  }

  /**
   * Show a page with a question; true if the user agrees, false if it is closed.
   *
   * An open page is loaded again: the user agrees to what would be done now.
   */
  ask(kind: string, some: Partial<PageIds> = {}): Promise<boolean> {
    const before = this.#tabs.find(idsOf(kind, some));
    const page = this.open(kind, some);
    void before?.renew();
    return page.answer();
  }

  dispose(): void {
    this.#tabs.dispose();
  }
}

function idsOf(kind: string, some: Partial<PageIds>): PageIds {
  return { sessionId: "", turnId: "", name: "", folder: "", ...some, kind };
}

/** Tab titles until the pages are loaded. */
const FIRST: Readonly<Record<string, string>> = {
  losses: "Lost in Compaction",
  doctor: "Doctor",
  digest: "Digest",
  record: "Record",
  checkpoint: "Checkpoint",
  compaction: "Compaction Report",
  restore: "Restore",
  connect: "Connect Codex",
  disconnect: "Disconnect Codex",
  import: "Import",
};

class SectionsPage extends AnsweredPage {
  readonly #ids: PageIds;
  #page: ShownPage | null = null;
  #answer: ((agreed: boolean) => void) | null = null;

  constructor(tab: Tab<keyof PageIds>) {
    super(tab);
    this.#ids = tab.ids;
  }

  /** Wait for the answer to the question of the page. */
  answer(): Promise<boolean> {
    this.#answer?.(false);
    return new Promise((answer) => {
      this.#answer = answer;
    });
  }

  renew(): Promise<void> {
    return this.look();
  }

  protected concerns(changes: ReadonlySet<string>): boolean {
    const { kind } = this.#ids;
    const named = this.#page?.sessionIds ?? [];
    return !FIXED.has(kind) && (kind === "doctor" || named.some((id) => changes.has(id)));
  }

  /** A checkpoint page updates with each record; other pages wait for a quiet period. */
  protected override changed(): void {
    if (this.#ids.kind === "checkpoint") {
      void this.look();
    } else {
      super.changed();
    }
  }

  protected override leave(): void {
    super.leave();
    this.#answer?.(false);
  }

  protected async handle(message: FromPage): Promise<unknown> {
    switch (message.kind) {
      case "copy":
        await vscode.env.clipboard.writeText(this.#page?.text ?? "");
        return showDone("Copied as text");
      case "cancel":
        return this.close();
      case "target":
        return this.#open(message.target);
      default:
        return undefined;
    }
  }

  protected async ask(token: vscode.CancellationToken): Promise<readonly [string, ToPage] | null> {
    const ids = this.#ids;
    const orNull = (id: string) => (id === "" ? null : id);
    const asked = {
      kind: ids.kind,
      sessionId: orNull(ids.sessionId),
      turnId: orNull(ids.turnId),
      name: orNull(ids.name),
      folder: orNull(ids.folder),
    };
    const { server } = this.app;
    const page =
      ids.kind === "import"
        ? await longRequest(server, "Reading the pack", "page", asked, token)
        : await server.request("page", { ...asked, workDoneToken: null }, token);
    if (page === undefined) {
      if (!token.isCancellationRequested) {
        this.close(); // the user cancelled it
      }
      return null;
    }
    this.#page = page;
    return [tabTitle(page), { kind: "sections", ids, page }];
  }

  /** Open a link target. */
  async #open({ kind, name, sessionId }: PageLink): Promise<unknown> {
    const { server, pages, reports } = this.app;
    await answering(server);
    const session = async () =>
      (await server.request("session", { sessionId: sessionId ?? "" })).summary;
    switch (kind) {
      case "session":
        return runCommand("goToSession", { sessionId: name });
      case "record":
        return reports.openRecord(sessionId ?? "", name);
      case "turn": {
        const { summary, turns } = await server.request("session", { sessionId: sessionId ?? "" });
        const found = turns.find(({ turnId, number }) => [turnId, String(number)].includes(name));
        const place = {
          kind: "place",
          turn: found?.number ?? null,
          seq: null,
          found: null,
        } as const;
        return pages.show(summary).sendOnceLoaded(place);
      }
      case "file":
        return openArtifact((await session()).cwd, name);
      case "setting":
        return openSettings(`@id:codexCheckpoints.${name}`);
      default:
        return this.#run(name, sessionId);
    }
  }

  async #run(name: string, sessionId: string | null): Promise<unknown> {
    const { command } = COMMANDS[name] ?? {};
    if (name === this.#ids.kind && name in QUESTIONS) {
      const answer = this.#answer;
      this.#answer = null;
      this.close();
      // A page that came back with its window belongs to no running command.
      return answer === null ? command && runCommand(command) : answer(true);
    }
    if (command === "resetContext") {
      const operationId = this.#ids.name;
      const { checkpointId } = await this.app.server.request("restoreDetails", { operationId });
      return runCommand(command, { sessionId, checkpointId });
    }
    return command && runCommand(command, ...(sessionId === null ? [] : [{ sessionId }]));
  }
}
