/** Locates the files that a session worked on, and finds their earlier texts. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { ChangesParams, FileChange, SessionSummary } from "../client/protocol.ts";
import { inform, warn } from "./messages.ts";
import { artifactPath } from "./model/documents.ts";

/** Open a file of a session, or show why it cannot be opened. */
export async function openArtifact(cwd: string | null, uri: string): Promise<void> {
  const file = await artifactAt(cwd, uri);
  if (file !== null) {
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
  }
}

/** Find a session's file; show an error and return null if there is none. */
export async function artifactAt(cwd: string | null, uri: string): Promise<vscode.Uri | null> {
  const path = artifactPath(cwd, uri);
  if (path === null) {
    void warn("This address cannot be opened from a checkpoint.");
    return null;
  }
  const target = vscode.Uri.file(path);
  try {
    const { type } = await vscode.workspace.fs.stat(target);
    // Reading a pipe or a device might never end.
    if ((type & vscode.FileType.File) === 0) {
      void warn("This is not a file.");
      return null;
    }
  } catch {
    void inform("This file is no longer there.");
    return null;
  }
  return target;
}

/** Maximum number of commits to search. */
const LOOKED_AT = 50;

/** Maximum number of files to look up in Git, and the maximum size of each in bytes. */
const MOST_BASES = 50;
const LARGEST_BASIS = 1 << 20;

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

/** An earlier state of a file, to compare with the current one. */
export interface Then {
  readonly uri: string;
  /** The required hash of the text; null for the text at the end of the turn. */
  readonly hash: string | null;
  /** Compare with the end of this turn; null for the end of the session. */
  readonly turnId: string | null;
  /** A description of the state. */
  readonly words: string;
}

/** Return a file's earlier text, its Git URI, or else its patches. */
export async function earlierState(
  server: Server,
  session: SessionSummary,
  { uri, hash, turnId }: Then,
  file: vscode.Uri,
): Promise<string | vscode.Uri | FileChange | null> {
  const { sessionId } = session;
  const asked = { sessionId, turnId: null, afterTurnId: turnId, uri };
  const change = (await changesOf(server, session, asked))[0] ?? null;
  const text = (turnId === null ? change?.after : change?.before) ?? null;
  if (text !== null && (hash === null || sha256(text) === hash)) {
    return text;
  }
  const repository = hash === null ? null : await repositoryOf(file);
  for (const commit of (await repository?.log(file).catch(() => [])) ?? []) {
    const content = await repository?.content(commit, file);
    if (content && sha256(content) === hash) {
      return repository?.address(commit, file) ?? null;
    }
  }
  return change;
}

/**
 * Return the file changes of a session's turns, with the verified texts. Git's files at the commit
 * checked out when the session began also serve to verify a text.
 */
export async function changesOf(
  server: Server,
  { cwd, git }: SessionSummary,
  asked: Pick<ChangesParams, "sessionId" | "turnId" | "afterTurnId" | "uri">,
): Promise<readonly FileChange[]> {
  const ask = async (bases: Readonly<Record<string, string>>) =>
    (await server.request("changes", { ...asked, texts: true, bases })).files;
  const files = await ask({});
  const bases: Record<string, string> = {};
  const unproved = files.filter(({ before, after }) => before === null || after === null);
  for (const { uri } of git?.commit ? unproved.slice(0, MOST_BASES) : []) {
    const path = artifactPath(cwd, uri);
    const file = path === null ? null : vscode.Uri.file(path);
    const repository = file === null ? null : await repositoryOf(file);
    const content = await repository?.content(git?.commit ?? "", file ?? vscode.Uri.file(""));
    if (content && content.length <= LARGEST_BASIS) {
      bases[uri] = content.toString();
    }
  }
  return Object.keys(bases).length === 0 ? files : await ask(bases);
}

function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

/** Return a file's repository from VS Code's Git; none in an untrusted folder. */
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
          content: async (commit: string, { fsPath }: vscode.Uri) => {
            const content = await found.buffer(commit, fsPath).catch(() => null);
            return content === null ? null : Buffer.from(content);
          },
          address: (commit: string, uri: vscode.Uri) => git.toGitUri(uri, commit),
        };
  } catch {
    return null; // Git is disabled
  }
}
