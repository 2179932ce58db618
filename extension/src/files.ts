/** Opens a file that a session worked on. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { artifactPath } from "./model/documents.ts";
import { plain } from "./model/text.ts";

/** Open a file of a session, or show why it cannot be opened. */
export async function openArtifact(cwd: string | null, uri: string): Promise<void> {
  const file = await artifactAt(cwd, uri);
  if (file !== null) {
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
  }
}

/** Find a file of a session; null after showing why there is none. */
export async function artifactAt(cwd: string | null, uri: string): Promise<vscode.Uri | null> {
  const path = artifactPath(cwd, uri);
  if (path === null) {
    void vscode.window.showWarningMessage("This address cannot be opened from a checkpoint.");
    return null;
  }
  const target = vscode.Uri.file(path);
  try {
    const { type } = await vscode.workspace.fs.stat(target);
    // Reading a pipe or a device might never end.
    if ((type & vscode.FileType.File) === 0) {
      void vscode.window.showWarningMessage("This is not a file.");
      return null;
    }
  } catch {
    void vscode.window.showInformationMessage("This file is no longer there.");
    return null;
  }
  return target;
}

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

/** Compare a file with the commit that has this hash; without one show the file alone. */
export async function showWhatChanged(cwd: string | null, uri: string, hash: string) {
  const file = await artifactAt(cwd, uri);
  if (file === null) {
    return;
  }
  const earlier = await earlierState(file, hash);
  if (earlier === null) {
    const sentence = "Git does not have the earlier content; this is the file as it is now.";
    vscode.window.setStatusBarMessage(sentence, 5000);
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
    return;
  }
  const title = `${plain(file.path.split("/").at(-1) ?? "")}: when noted ↔ now`;
  await vscode.commands.executeCommand("vscode.diff", earlier, file, title, { preview: true });
}

async function earlierState(file: vscode.Uri, hash: string): Promise<vscode.Uri | null> {
  const extension = vscode.extensions.getExtension<GitExtension>("vscode.git");
  if (extension === undefined) {
    return null;
  }
  try {
    const git = (await extension.activate()).getAPI(1);
    const repository = git.getRepository(file);
    const commits = await repository?.log({ maxEntries: LOOKED_AT, path: file.fsPath });
    for (const { hash: commit } of commits ?? []) {
      const content = await repository?.buffer(commit, file.fsPath).catch(() => null);
      if (content && hash === `sha256:${createHash("sha256").update(content).digest("hex")}`) {
        return git.toGitUri(file, commit);
      }
    }
  } catch {
    // Git is disabled, or the file is in no repository.
  }
  return null;
}
