/** Opens a file that a session worked on. */

import * as vscode from "vscode";
import { artifactPath } from "./model/documents.ts";

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
