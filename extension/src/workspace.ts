/** The folders of this window, as the sessions in them name theirs. */

import { realpath } from "node:fs/promises";
import * as vscode from "vscode";

/** The paths of this window's folders, symbolic links resolved: so Codex writes them down. */
export async function workspacePaths(): Promise<readonly string[]> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const paths = folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)));
  return [...new Set(real)];
}

/** The path of a file as a session would name it: a link to its folder of this window is resolved. */
export async function pathForSessions(file: vscode.Uri): Promise<string> {
  const folder = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath;
  if (folder === undefined) {
    return file.fsPath;
  }
  const real = await realpath(folder).catch(() => folder);
  return `${real}${file.fsPath.slice(folder.length)}`;
}
