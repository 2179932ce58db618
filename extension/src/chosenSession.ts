/** Which session a command is about: that of the row a menu was opened on, else the one in view. */

import * as vscode from "vscode";
import type { Following } from "./following.ts";
import type { SessionSummary } from "./protocol.ts";
import type { SessionNode } from "./sessionItem.ts";
import { telling } from "./telling.ts";

/** The session of a row, else the one in view. */
export function chosenSession(following: Following, node?: SessionNode): SessionSummary | null {
  return node?.kind === "session" ? node.session : following.current;
}

/** Make a command about a session; without one it says how to choose it. */
export function onSession(following: Following, act: (session: SessionSummary) => Promise<void>) {
  return (node?: SessionNode): Promise<void> => {
    const session = chosenSession(following, node);
    return session === null ? tellNoSession() : act(session);
  };
}

/** Work on the session in view; say in words why the server would not. */
export function inView(
  following: Following,
  work: (session: SessionSummary) => Promise<void>,
): Promise<void> {
  const session = following.current;
  return session === null ? tellNoSession() : telling(() => work(session));
}

/** Say that a session is to be chosen first. */
export async function tellNoSession(): Promise<void> {
  await vscode.window.showInformationMessage("Choose a session in the Sessions view first.");
}
