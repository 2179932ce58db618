/** The folders of this window, as the sessions in them name theirs. */

import { realpath } from "node:fs/promises";
import * as vscode from "vscode";
import { isBelow } from "./model/listing.ts";

const IGNORES_CASE = process.platform === "win32" || process.platform === "darwin";

/** The paths of this window's folders, symbolic links resolved: so Codex writes them down. */
export async function workspacePaths(): Promise<readonly string[]> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const paths = folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)));
  return [...new Set(real)];
}

/** Whether a session belongs to one of these folders. */
export function isOf(paths: readonly string[], cwd: string | null): boolean {
  return isBelow(cwd, paths, IGNORES_CASE);
}
