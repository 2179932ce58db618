/** Starts the installed Codex in a terminal. */

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import * as vscode from "vscode";
import { chooseCodex } from "../client/interpreters.ts";
import { codexMissing } from "../client/model/interpreters.ts";
import * as settings from "../client/settings.ts";
import { isPlainId } from "../sessions/model/rows.ts";
import { warn } from "./messages.ts";
import { harmless } from "./model/text.ts";

/** Start Codex, or resume a session in its folder. */
export async function openCodex(sessionId?: string, cwd?: string | null): Promise<void> {
  // Only a plain id may be typed into a shell.
  if (sessionId !== undefined && !isPlainId(sessionId)) {
    await refuseId();
    return;
  }
  const folder = cwd ? await folderAt(cwd) : undefined;
  const where = folder === undefined ? {} : { cwd: folder };
  const chosen = settings.path("codexPath");
  if (!isThere(chosen || "codex")) {
    const why = harmless(codexMissing(chosen, vscode.env.remoteName));
    await warn(why, { "Choose Codex…": () => chooseCodex() });
  } else if (chosen !== "") {
    const shellArgs = sessionId === undefined ? [] : ["resume", sessionId];
    const how = { name: "Codex", shellPath: chosen, shellArgs, ...where };
    vscode.window.createTerminal(how).show();
  } else {
    const terminal = vscode.window.createTerminal({ name: "Codex", ...where });
    terminal.show();
    terminal.sendText(sessionId === undefined ? "codex" : `codex resume ${sessionId}`);
  }
}

/** Check whether a program is on the PATH, or exists at its path. */
export function isThere(program: string): boolean {
  return /[\\/]/.test(program) ? existsSync(program) : isOnPath(program);
}

function isOnPath(name: string): boolean {
  const ends = process.platform === "win32" ? [".exe", ".cmd", ".bat", ""] : [""];
  const { PATH = "" } = process.env;
  const folders = PATH.split(delimiter).filter((each) => each !== "");
  return folders.some((folder) => ends.some((end) => existsSync(join(folder, `${name}${end}`))));
}

export function refuseId(): Promise<void> {
  return warn("This session's ID is not one that Codex uses, so it is not passed to a shell.");
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
