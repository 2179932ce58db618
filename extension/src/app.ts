/** What commands work with, and which session each of them is about. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Documents } from "./documents.ts";
import type { ChangeFeed, Following } from "./following.ts";
import { type Marker, SessionRequest, type SessionSummary } from "./protocol.ts";
import { attempt } from "./requests.ts";
import type { SessionNode, SessionTree } from "./sessionTree.ts";

/** The parts of this window that commands work with. */
export interface App {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly following: Following;
  readonly tree: SessionTree;
  readonly documents: Documents;
}

/** Commands by their names in package.json, without the prefix. */
export type Commands = Record<string, (...args: never[]) => unknown>;

/** What a command about a session is called with: a row, a session by its id, or nothing. */
export type Target = SessionNode | { readonly kind?: undefined; readonly sessionId: string };

/** Make a command about the session of a row, else the one in view; refusals are shown. */
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

/** Work on the session in view; refusals are shown. */
export function inView(app: App, act: (session: SessionSummary) => Promise<void>): Promise<void> {
  return onSession(app, act)();
}

export async function askToChoose(): Promise<void> {
  await vscode.window.showInformationMessage("Choose a session in the Sessions view first.");
}

async function sessionOf(app: App, target?: Target): Promise<SessionSummary | null> {
  if (target === undefined || target.kind !== undefined) {
    return target !== undefined && "session" in target ? target.session : app.following.current;
  }
  const { sessionId } = target;
  return (await app.server.request(SessionRequest, { sessionId })).summary;
}
