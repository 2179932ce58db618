/** Opens a file that a session worked on. */

import * as vscode from "vscode";
import { artifactPath } from "./model/artifact.ts";

/** Open it if it is a file that is there; say so if not. Its name is never shown as markup. */
export async function openArtifact(cwd: string | null, uri: string): Promise<void> {
  const file = await artifactAt(cwd, uri);
  if (file !== null) {
    await vscode.commands.executeCommand("vscode.open", file, { preview: true });
  }
}

/** Find the file that a session calls so; null, once a person has been told why, where there is none. */
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
