/** The user's settings, as the server and the search for an interpreter want them. */

import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import * as vscode from "vscode";
import type { InitializationOptions } from "./protocol.ts";

export const SECTION = "codexCheckpoints";

/** What the server calls its own settings; the names here are the same. */
const FOR_THE_SERVER = [
  "caps",
  "checkpointLocation",
  "compactionOffer",
  "contextWindowTokens",
  "driftGuard",
  "fastContextWindowTokens",
  "followedSessions",
  "hashLimitBytes",
  "hashOutsideFolder",
];

/** What is told to the server; a setting that nobody touched leaves `config.toml` in force. */
export function initializationOptions(): InitializationOptions {
  const settings: Record<string, unknown> = {};
  for (const name of FOR_THE_SERVER) {
    const value = chosen<unknown>(name);
    if (value !== undefined) {
      settings[name] = value;
    }
  }
  return { codexHome: folder("codexHome"), stateDir: folder("stateDir"), settings };
}

/** The command that the user wants to be the server, if any. */
export function serverCommand(): readonly string[] | null {
  const command = chosen<unknown>("server.command");
  const isUsable =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((part) => typeof part === "string");
  return isUsable ? command : null;
}

/** The interpreter that the user named; empty when none. */
export function pythonSetting(): string {
  return path("python");
}

export function isTracing(): boolean {
  return vscode.workspace.getConfiguration(SECTION).get("trace") === "requests";
}

/** Write for all folders that something is not wanted; rejects where the settings cannot be written. */
export async function turnOff(name: string, off: unknown): Promise<void> {
  const all = vscode.workspace.getConfiguration(SECTION);
  await all.update(name, off, vscode.ConfigurationTarget.Global);
}

/** What the Python extension has chosen; nothing in a folder that is not trusted. */
export async function pythonExtensionChoice(): Promise<string | null> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined || !vscode.workspace.isTrusted) {
    return null;
  }
  try {
    const environments = (await extension.activate())?.environments;
    const active = environments?.getActiveEnvironmentPath();
    if (environments === undefined || active === undefined) {
      return null;
    }
    const resolved = await environments.resolveEnvironment(active);
    return resolved?.executable.uri?.fsPath ?? null;
  } catch {
    return null; // it is a convenience; its failures are its own
  }
}

/** The part of that extension's interface that is used. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(): unknown;
    resolveEnvironment(
      path: unknown,
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

function folder(name: string): string | null {
  return path(name) || null;
}

/** A value that somebody set, wherever it may be set; defaults are the server's. */
function chosen<T>(name: string): T | undefined {
  const all = vscode.workspace.getConfiguration(SECTION);
  const where = all.inspect<T>(name);
  const isSet =
    where?.globalValue !== undefined ||
    where?.workspaceValue !== undefined ||
    where?.workspaceFolderValue !== undefined;
  return isSet ? all.get<T>(name) : undefined;
}

/** A path that somebody set; empty where there is none, or something else stands in its place. */
function path(name: string): string {
  const value = chosen<unknown>(name);
  return typeof value === "string" ? value.replace(/^~(?=[\\/]|$)/, homedir()) : "";
}

export function setContext(name: string, value: unknown): void {
  void vscode.commands.executeCommand("setContext", `codexCheckpoints.${name}`, value);
}

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
