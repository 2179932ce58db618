/** Shows a file beside what it was when a fact was noted, where git still knows that. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { plain } from "./model/text.ts";
import { artifactAt } from "./openArtifact.ts";

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
