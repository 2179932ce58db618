/** Shows diffs of changed files, with verified texts where they exist (rules, "Changed files"). */

import * as vscode from "vscode";
import type { SessionSummary, TurnEntry } from "../client/protocol.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { artifactAt, changesOf, earlierState, type Then } from "../common/files.ts";
import { inform } from "../common/messages.ts";
import { fileName, plain, subject } from "../common/model/text.ts";
import { excerpts, hasText } from "./model/changes.ts";

/**
 * Compare a file with its earlier state, as far as the session and Git have it; else show the
 * session's patches, or only the file.
 */
export async function showWhatChanged(
  { server, documents }: Pick<App, "server" | "documents">,
  session: SessionSummary,
  then: Then,
): Promise<void> {
  const file = await artifactAt(session.cwd, then.uri);
  if (file === null) {
    return;
  }
  const found = await earlierState(server, session, then, file);
  const name = plain(file.path.split("/").at(-1) ?? "");
  if (typeof found === "string" || found instanceof vscode.Uri) {
    const left = typeof found === "string" ? documents.part(then.uri, found) : found;
    const title = `${name}: ${then.words} ↔ now`;
    await vscode.commands.executeCommand("vscode.diff", left, file, title, { preview: true });
    return;
  }
  const patches = found?.patches ?? [];
  if (!patches.some(hasText)) {
    const sentence = "Neither the session nor Git has the earlier text; this is the file now.";
    vscode.window.setStatusBarMessage(sentence, 5000);
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
    return;
  }
  const { before, after } = excerpts(patches);
  const [left, right] = [before, after].map((text) =>
    documents.part(`${then.uri} (from patches)`, text),
  );
  const title = `${name} (from patches): the full text then is not known`;
  await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true });
}

/** Show the files changed by a session, or by one of its turns, each as a diff. */
export async function showChanges(
  { server, documents }: Pick<App, "server" | "documents">,
  session: SessionSummary,
  turn: { readonly turnId: string; readonly words: string } | null,
): Promise<void> {
  const { sessionId } = session;
  const asked = { sessionId, turnId: turn?.turnId ?? null, afterTurnId: null, uri: null };
  const files = await changesOf(server, session, asked);
  if (files.length === 0) {
    const what = turn === null ? "The session" : `In ${turn.words} the session`;
    await inform(`${what} changed no file.`);
    return;
  }
  const place = turn === null ? "" : ` in ${turn.words}`;
  await documents.showFiles(`${fileName(subject(session))}: what changed${place}`, asked, files);
}

/** Show a session's changes to a file, or one turn's, as a diff. */
export async function showChange(
  { server, documents }: Pick<App, "server" | "documents">,
  session: SessionSummary,
  uri: string,
  turn: TurnEntry | null,
): Promise<void> {
  const { sessionId } = session;
  const asked = { sessionId, turnId: turn?.turnId ?? null, afterTurnId: null, uri };
  const [file] = await changesOf(server, session, asked);
  if (file === undefined) {
    await inform("The session does not record how this file was changed.");
  } else {
    await documents.showFile(asked, file, turn === null ? "" : `turn ${turn.number}`);
  }
}

export function changeCommands(app: App): Commands {
  return {
    showChanges: onSession(app, (session) => showChanges(app, session, null)),
  };
}
