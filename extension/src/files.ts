/** Opens a file that a session worked on. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { artifactPath } from "./model/documents.ts";
import { plain } from "./model/text.ts";

/** Open it if it is a file that is there; say so if not. Its name is never shown as markup. */
export async function openArtifact(cwd: string | null, uri: string): Promise<void> {
  const file = await artifactAt(cwd, uri);
  if (file !== null) {
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
  }
}

/** Find a file of a session; null where there is none, and a person has read why. */
export async function artifactAt(cwd: string | null, uri: string): Promise<vscode.Uri | null> {
  const path = artifactPath(cwd, uri);
  if (path === null) {
    void vscode.window.showWarningMessage("This place is not opened from a checkpoint.");
    return null;
  }
  const target = vscode.Uri.file(path);
  try {
    const { type } = await vscode.workspace.fs.stat(target);
    // A pipe or a device would never end.
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

/** How many earlier states of the file are looked at. */
const LOOKED_AT = 50;

/** What is used of the editor's own git extension (its API, version 1). */
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

/** Open the comparison, or say that the earlier content is not known. */
export async function showWhatChanged(
  cwd: string | null,
  uri: string,
  hash: string,
): Promise<void> {
  const file = await artifactAt(cwd, uri);
  if (file === null) {
    return;
  }
  const earlier = await earlierState(file, hash);
  if (earlier === null) {
    const sentence = "Git does not know what the file was then; it is shown as it is now.";
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
    // Git is switched off here, or the file is in no repository.
  }
  return null;
}
