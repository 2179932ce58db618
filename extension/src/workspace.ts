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
