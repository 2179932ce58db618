/** Opens a session in a terminal, with the Codex that is installed. */

import * as vscode from "vscode";
import { isPlainId } from "./model/sessions.ts";

/** Open a terminal where the session worked, and resume it there. */
export async function openCodex(sessionId: string, cwd: string | null): Promise<void> {
  // What is typed into a shell must be nothing but an id.
  if (!isPlainId(sessionId)) {
    await tellNoPlainId();
    return;
  }
  const folder = cwd === null ? undefined : await folderAt(cwd);
  const terminal = vscode.window.createTerminal({
    name: "Codex",
    ...(folder === undefined ? {} : { cwd: folder }),
  });
  terminal.show();
  terminal.sendText(`codex resume ${sessionId}`);
}

/** Say why a session is not given to a shell. */
export async function tellNoPlainId(): Promise<void> {
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
