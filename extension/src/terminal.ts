/** Starts the installed Codex in a terminal. */

import * as vscode from "vscode";
import { isPlainId } from "./model/sessions.ts";

/** Start Codex, or resume a session in its folder. */
export async function openCodex(sessionId?: string, cwd?: string | null): Promise<void> {
  // Only a plain id may be typed into a shell.
  if (sessionId !== undefined && !isPlainId(sessionId)) {
    await refuseId();
    return;
  }
  const folder = cwd ? await folderAt(cwd) : undefined;
  const where = folder === undefined ? {} : { cwd: folder };
  const terminal = vscode.window.createTerminal({ name: "Codex", ...where });
  terminal.show();
  terminal.sendText(sessionId === undefined ? "codex" : `codex resume ${sessionId}`);
}

export async function refuseId(): Promise<void> {
  await vscode.window.showWarningMessage(
    "This session's id is not one that Codex gives, so it is not handed to a shell.",
  );
}

async function folderAt(path: string): Promise<vscode.Uri | undefined> {
  const folder = vscode.Uri.file(path);
  try {
    const { type } = await vscode.workspace.fs.stat(folder);
    return (type & vscode.FileType.Directory) === 0 ? undefined : folder;
  } catch {
    return undefined;
  }
}
