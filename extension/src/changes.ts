/** Diffs of the files that a session changed, with the texts that are proved (rules, "Changed files"). */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import type { Server } from "./client.ts";
import { artifactAt } from "./files.ts";
import { excerpts } from "./model/changes.ts";
import { fileName, plain, subject } from "./model/text.ts";
import { ChangesRequest, type FileChange, type SessionSummary } from "./protocol.ts";

/** How many commits are searched. */
const LOOKED_AT = 50;

/** The part of VS Code's git extension API (version 1) that is used. */
interface GitExtension {
  getAPI(version: 1): {
    getRepository(uri: vscode.Uri): Repository | null;
    toGitUri(uri: vscode.Uri, ref: string): vscode.Uri;
  };
}

interface Repository {
  log(options: { maxEntries: number; path: string }): Promise<readonly { hash: string }[]>;
  buffer(ref: string, path: string): Promise<Uint8Array>;
}

/** The state of a file to compare with what is there now. */
export interface Then {
  readonly uri: string;
  /** The hash that the text must have; null for the text at the end of the turn. */
  readonly hash: string | null;
  /** Compare with the end of this turn; null for the end of the session. */
  readonly turnId: string | null;
  /** That state in words. */
  readonly words: string;
}

/**
 * Compare a file with what it was, as far as session and git tell; else show the session's patches
 * of it, or the file alone.
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
  if (patches.length === 0) {
    const sentence = "Neither the session nor Git has the earlier text; this is the file now.";
    vscode.window.setStatusBarMessage(sentence, 5000);
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
    return;
  }
  const { before, after } = excerpts(patches);
  const [left, right] = [before, after].map((text) =>
    documents.part(`patches only/${then.uri}`, text),
  );
  const title = `${name}: patches of the session only, its text then is not known`;
  await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true });
}

/** The text of a file then, Git's address of it, or else the file's patches. */
async function earlierState(
  server: Server,
  { sessionId, git }: SessionSummary,
  { uri, hash, turnId }: Then,
  file: vscode.Uri,
): Promise<string | vscode.Uri | FileChange | null> {
  const ask = async (basis: string | null) => {
    const asked = { sessionId, turnId: null, afterTurnId: turnId, uri, texts: true, basis };
    return (await server.request(ChangesRequest, asked)).files[0] ?? null;
  };
  const textOf = (change: FileChange | null) => {
    const text = turnId === null ? change?.after : change?.before;
    const isIt = hash === null || (text != null && sha256(text) === hash);
    return isIt ? (text ?? null) : null;
  };
  const change = await ask(null);
  const text = textOf(change);
  if (text !== null) {
    return text;
  }
  const repository = await repositoryOf(file);
  if (repository === null) {
    return change;
  }
  const commits = await repository.log(file).catch(() => []);
  for (const commit of hash === null ? [] : commits) {
    const content = await repository.content(commit, file);
    if (content !== null && sha256(content) === hash) {
      return repository.address(commit, file);
    }
  }
  const basis = git?.commit == null ? null : await repository.content(git.commit, file);
  return basis === null ? change : (textOf(await ask(basis.toString())) ?? change);
}

function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

/** The repository of a file, by VS Code's Git; none in a folder that is not trusted. */
async function repositoryOf(file: vscode.Uri) {
  const extension = vscode.extensions.getExtension<GitExtension>("vscode.git");
  if (extension === undefined || !vscode.workspace.isTrusted) {
    return null;
  }
  try {
    const git = (await extension.activate()).getAPI(1);
    const found = git.getRepository(file);
    return found === null
      ? null
      : {
          log: async ({ fsPath }: vscode.Uri) =>
            (await found.log({ maxEntries: LOOKED_AT, path: fsPath })).map(({ hash }) => hash),
          content: async (commit: string, { fsPath }: vscode.Uri) =>
            Buffer.from(await found.buffer(commit, fsPath).catch(() => Buffer.alloc(0))),
          address: (commit: string, uri: vscode.Uri) => git.toGitUri(uri, commit),
        };
  } catch {
    return null; // Git is disabled
  }
}

/** Show the files that a session changed, or one of its turns, each as a diff. */
export async function showChanges(
  { server, documents }: Pick<App, "server" | "documents">,
  session: SessionSummary,
  turn: { readonly turnId: string; readonly words: string } | null,
): Promise<void> {
  const { sessionId } = session;
  const asked = { afterTurnId: null, uri: null, texts: true, basis: null };
  const turnId = turn?.turnId ?? null;
  const { files } = await server.request(ChangesRequest, { sessionId, turnId, ...asked });
  if (files.length === 0) {
    const what = turn === null ? "The session" : `In ${turn.words} the session`;
    await vscode.window.showInformationMessage(`${what} changed no file.`);
    return;
  }
  const place = turn === null ? "" : ` in ${turn.words}`;
  await documents.showFiles(`${fileName(subject(session))}: what changed${place}`, files);
}

export function changeCommands(app: App): Commands {
  return {
    showChanges: onSession(app, (session) => showChanges(app, session, null)),
  };
}
