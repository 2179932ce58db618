/** Shared state of the commands, and the lookup of a command's session. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { Marker, SessionSummary } from "../client/protocol.ts";
import { attempt } from "../client/requests.ts";
import type { PagePlace } from "../page/model/page.ts";
import type { ChangeFeed, Following } from "../sessions/sessionInView.ts";
import type { SessionNode, SessionTree } from "../sessions/tree.ts";
import type { Documents } from "./documents.ts";
import { inform } from "./messages.ts";
import type { PageIds } from "./model/sections.ts";

export interface App {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly following: Following;
  readonly tree: SessionTree;
  /** The checkpoint tree, which can reveal a row. */
  readonly checkpoint: { show(id: string): void };
  readonly documents: Documents;
  /** The pages that the server describes. */
  readonly reports: {
    open(kind: string, some?: Partial<PageIds>, column?: number): unknown;
    openRecord(sessionId: string, name: string, column?: number): void;
    ask(kind: string, some?: Partial<PageIds>): Promise<boolean>;
  };
  /** The session pages: opens a page, or replaces another session's page. */
  readonly pages: {
    show(session: SessionSummary): { sendOnceLoaded(place: PagePlace): void };
    preview(
      session: SessionSummary,
      preserveFocus?: boolean,
    ): { sendOnceLoaded(place: PagePlace): void };
    replace(sessionId: string, by: SessionSummary): boolean;
  };
}

/** Commands by name, without their prefix in package.json. */
export type Commands = Record<string, (...args: never[]) => unknown>;

/** The argument of a command about a session: a row, a session id, or nothing. */
export type Target = SessionNode | { readonly kind?: undefined; readonly sessionId: string };

/** Make a command for a row's session, or else for the session in view; it shows refusals. */
export function onSession(
  app: App,
  act: (session: SessionSummary, marker: Marker | null) => Promise<void>,
) {
  return (target?: Target): Promise<void> =>
    attempt(async () => {
      const session = await sessionOf(app, target);
      const marker = target?.kind === "marker" ? target.marker : null;
      await (session === null ? askToChoose() : act(session, marker));
    });
}

/** Run an action on the session in view; show refusals. */
export function inView(app: App, act: (session: SessionSummary) => Promise<void>): Promise<void> {
  return onSession(app, act)();
}

export async function askToChoose(): Promise<void> {
  await inform("Choose a session in the Sessions view first.");
}

/**
 * Show a new session: replace another session's page with its page, and select its row.
 *
 * `opens`: show its page even if the page of the other session was not open.
 */
export async function showNew(
  app: App,
  sessionId: string,
  insteadOf?: string,
  opens = false,
): Promise<void> {
  const { summary } = await app.server.request("session", { sessionId });
  app.following.choose(summary);
  const isReplaced = insteadOf !== undefined && app.pages.replace(insteadOf, summary);
  if (opens && !isReplaced) {
    app.pages.preview(summary);
  }
  await app.tree.reveal(sessionId, false);
}

async function sessionOf(app: App, target?: Target): Promise<SessionSummary | null> {
  if (target === undefined || target.kind !== undefined) {
    return target !== undefined && "session" in target ? target.session : app.following.current;
  }
  // A long session is read for seconds before a page opens.
  const busy = { location: vscode.ProgressLocation.Window, title: "Reading the session" };
  const { sessionId } = target;
  const asked = () => app.server.request("session", { sessionId });
  return (await vscode.window.withProgress(busy, asked)).summary;
}
