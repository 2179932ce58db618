/** Goes on with a session in a terminal, with the Codex that is installed. */

import * as vscode from "vscode";

const { l10n } = vscode;

/** Open a terminal where the session worked, and resume it there. */
export async function resumeInTerminal(sessionId: string, cwd: string | null): Promise<void> {
  // What is typed into a shell must be nothing but an id.
  if (!/^[\w-]+$/.test(sessionId)) {
    return;
  }
  const folder = cwd === null ? undefined : await folderAt(cwd);
  const terminal = vscode.window.createTerminal({
    name: l10n.t("Codex"),
    ...(folder === undefined ? {} : { cwd: folder }),
  });
  terminal.show();
  terminal.sendText(`codex resume ${sessionId}`);
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
