/** Reads the user's settings for the server and for the interpreter search. */

import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { namesIn } from "../compaction/model/digest.ts";
import type { InitializationOptions } from "./protocol.ts";

export const SECTION = "codexCheckpoints";

/** The server's settings; the server uses the same names. */
const FOR_THE_SERVER = [
  "caps",
  "checkpointLocation",
  "compactionOffer",
  "contextWindowTokens",
  "digestTokens",
  "driftGuard",
  "fastContextWindowTokens",
  "followedSessions",
  "hashLimitBytes",
  "hashOutsideFolder",
];

/** Return the server's settings; `config.toml` decides the unset ones. */
export function initializationOptions(): InitializationOptions {
  const where = vscode.workspace.getConfiguration(SECTION).inspect("digestIgnore");
  const digestIgnore = namesIn([where?.globalValue, where?.workspaceValue]);
  const added = digestIgnore.length > 0 ? { digestIgnore } : {};
  const settings: Record<string, unknown> = { ...added };
  for (const name of FOR_THE_SERVER) {
    const value = chosen<unknown>(name);
    if (value !== undefined) {
      settings[name] = value;
    }
  }
  return { codexHome: path("codexHome") || null, stateDir: path("stateDir") || null, settings };
}

/** The user's own server command; null without one. */
export function serverCommand(): readonly string[] | null {
  const command = chosen<unknown>("server.command");
  const isUsable =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((part) => typeof part === "string");
  return isUsable ? command : null;
}

export function isTracing(): boolean {
  return vscode.workspace.getConfiguration(SECTION).get("trace") === "requests";
}

/** Change a setting for all folders; rejects if settings cannot be written. */
export async function setForAll(name: string, value: unknown): Promise<void> {
  const all = vscode.workspace.getConfiguration(SECTION);
  await all.update(name, value, vscode.ConfigurationTarget.Global);
}

/** Open the settings; in a remote window, the remote machine's settings, which include ours. */
export async function openSettings(query: string): Promise<void> {
  const isRemote = vscode.env.remoteName !== undefined;
  const name = isRemote ? "openRemoteSettings" : "openSettings";
  await vscode.commands.executeCommand(`workbench.action.${name}`, { query });
}

/** The interpreter of the Python extension; null in a folder that is not trusted. */
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
    return null; // optional: ignore errors of the Python extension
  }
}

/** The part of the Python extension's API that is used. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(): unknown;
    resolveEnvironment(
      path: unknown,
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

/** Return a value that the user set at any level; the server has the defaults. */
function chosen<T>(name: string): T | undefined {
  const all = vscode.workspace.getConfiguration(SECTION);
  const where = all.inspect<T>(name);
  const isSet =
    where?.globalValue !== undefined ||
    where?.workspaceValue !== undefined ||
    where?.workspaceFolderValue !== undefined;
  return isSet ? all.get<T>(name) : undefined;
}

/** A path that the user set; empty without one. */
export function path(name: string): string {
  const value = chosen<unknown>(name);
  return typeof value === "string" ? value.replace(/^~(?=[\\/]|$)/, homedir()) : "";
}

/** Last value of each context key: setting one makes the editor reevaluate all conditions. */
const contextKeys = new Map<string, unknown>();

export function setContext(name: string, value: unknown): void {
  if (contextKeys.has(name) && contextKeys.get(name) === value) {
    return;
  }
  contextKeys.set(name, value);
  void vscode.commands.executeCommand("setContext", `codexCheckpoints.${name}`, value);
}

/** The real paths of this window's folders: Codex records real paths. */
export async function workspacePaths(): Promise<readonly string[]> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const paths = folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)));
  return [...new Set(real)];
}

/** Return a file's path as sessions record it, with links in the workspace folder resolved. */
export async function pathForSessions(file: vscode.Uri): Promise<string> {
  const folder = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath;
  if (folder === undefined) {
    return file.fsPath;
  }
  const real = await realpath(folder).catch(() => folder);
  return `${real}${file.fsPath.slice(folder.length)}`;
}
