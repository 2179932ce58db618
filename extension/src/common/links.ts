/** Opens links in a session's text: files in its folder or in the workspace, and web pages. */

import { realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import * as vscode from "vscode";
import type { SessionSummary } from "../client/protocol.ts";
import { artifactAt } from "./files.ts";
import { inform, warn } from "./messages.ts";
import { readTarget } from "./model/links.ts";

/** Open a link target, or show why it cannot be opened. */
export async function openLink({ cwd }: SessionSummary, address: string): Promise<void> {
  const target = readTarget(address);
  if (target === null) {
    await warn("This address cannot be opened from a session.");
  } else if (target.kind === "web") {
    // The editor asks before it opens an untrusted URL.
    await vscode.env.openExternal(vscode.Uri.parse(target.address, true));
  } else {
    await openFile(cwd, target.path, target.line);
  }
}

async function openFile(cwd: string | null, path: string, line: number | null): Promise<void> {
  const isLocal = cwd !== null && !/^[\\/]{2}/.test(cwd);
  const window = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const folders = isLocal ? [cwd, ...window] : window;
  const file = resolve(folders[0] ?? "/", path);
  if (!isBelow(file, folders)) {
    await inform("This file is outside the folders of the session and of this window.");
    return;
  }
  const found = await artifactAt(null, file);
  if (found === null) {
    return;
  }
  if (!isBelow(await real(file), await Promise.all(folders.map(real)))) {
    await inform("This is a symbolic link to a file outside the session's folder.");
    return;
  }
  const at = new vscode.Position((line ?? 1) - 1, 0);
  const place = line === null ? {} : { selection: new vscode.Range(at, at) };
  await vscode.commands.executeCommand("vscode.open", found, { preview: true, ...place });
}

function isBelow(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const path = relative(folder, file);
    return path !== "" && !isAbsolute(path) && path.split(sep)[0] !== "..";
  });
}

function real(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
