/** The user's settings, for the server and for the search of an interpreter. */

import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { namesIn } from "../compaction/model/digest.ts";
import type { InitializationOptions } from "./protocol.ts";

export const SECTION = "codexCheckpoints";

/** Settings of the server; they have the same names there. */
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

/** What the server gets; without a set value `config.toml` decides. */
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

/** Open the settings; on another machine those of that machine, where ours are. */
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
    return null; // it is a convenience; its failures are its own
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

/** A value that the user set anywhere; the server has the defaults. */
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

/** What the conditions of package.json were told last: telling it again costs the editor a look at all. */
const told = new Map<string, unknown>();

export function setContext(name: string, value: unknown): void {
  if (told.has(name) && told.get(name) === value) {
    return;
  }
  told.set(name, value);
  void vscode.commands.executeCommand("setContext", `codexCheckpoints.${name}`, value);
}

/** The real paths of this window's folders: Codex records real paths. */
export async function workspacePaths(): Promise<readonly string[]> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const paths = folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)));
  return [...new Set(real)];
}

/** The path of a file as a session names it: links of the window's folder are resolved. */
export async function pathForSessions(file: vscode.Uri): Promise<string> {
  const folder = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath;
  if (folder === undefined) {
    return file.fsPath;
  }
  const real = await realpath(folder).catch(() => folder);
  return `${real}${file.fsPath.slice(folder.length)}`;
}
