/** Finds the command of the server, starts it and reads its log. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type * as vscode from "vscode";
import { runCommand, warn } from "../common/messages.ts";
import { plain } from "../common/model/text.ts";
import {
  type Attempt,
  allPythons,
  findPython,
  ISOLATED,
  LAUNCHER,
  launcherText,
  PYTHON_SETTING,
  type Sources,
} from "./install.ts";
import * as settings from "./settings.ts";

/** Where the working interpreter is remembered until it fails. */
const REMEMBERED = "python";

const TIMEOUT_MS = 10_000;

export interface Seeker {
  readonly folder: string;
  /** The extension's storage folder, which updates keep. */
  readonly storage: string;
  readonly memory: vscode.Memento;
  readonly log: vscode.LogOutputChannel;
}

/** The server's command; if no interpreter can run the bundled one, a sentence that says so. */
export async function serverCommand(seeker: Seeker): Promise<readonly string[] | string> {
  const named = settings.serverCommand();
  if (named !== null) {
    return named;
  }
  const { folder, memory, log } = seeker;
  const launcher = join(folder, "bundled", "launch.py");
  const sources = await knownSources();
  const key = JSON.stringify([launcher, sources]);
  const remembered = memory.get<Remembered>(REMEMBERED);
  if (remembered?.key === key) {
    log.info(`again ${remembered.command.join(" ")}`);
    return [...remembered.command, ...ISOLATED, launcher, "serve"];
  }
  const around = { launcher, folder, environment: process.env, timeout: TIMEOUT_MS };
  let refused = "";
  const found = await findPython(sources, around, (attempt) => {
    log.info(attemptText(attempt));
    if (attempt.candidate.origin === PYTHON_SETTING && attempt.reason !== null) {
      refused = `The Python in the setting codexCheckpoints.python is not used: ${plain(attempt.reason)}.`;
    }
  });
  if (found === null) {
    return [refused, "Codex Checkpoints needs Python 3.11 to 3.14 and found none."]
      .join(" ")
      .trim();
  }
  if (refused !== "") {
    // The setting is not replaced silently.
    void warn(refused, { "Choose Python Interpreter": () => runCommand("choosePython") });
  }
  // A name on the PATH may be a version-manager shim, which slows every start.
  const command = found.executable === null ? found.candidate.command : [found.executable];
  // This takes half a second, and the next start can skip it.
  memory.update(REMEMBERED, { key, command } satisfies Remembered).then(undefined, () => {});
  return [...command, ...ISOLATED, launcher, "serve"];
}

/** Find all interpreters, each unusable one with the reason. */
export async function interpreters({ folder }: Seeker): Promise<readonly Attempt[]> {
  const launcher = join(folder, "bundled", "launch.py");
  const around = { launcher, folder, environment: process.env, timeout: TIMEOUT_MS };
  return allPythons(await knownSources(), around);
}

async function knownSources(): Promise<Sources> {
  const chosen = await settings.pythonExtensionChoice();
  return { setting: settings.path("python"), chosen, platform: process.platform };
}

/** Forget the interpreter; false if none was remembered. */
export async function forget({ memory }: Seeker): Promise<boolean> {
  const had = memory.get(REMEMBERED) !== undefined;
  await memory.update(REMEMBERED, undefined);
  return had;
}

interface Remembered {
  /** The search settings that the remembered interpreter is valid for. */
  readonly key: string;
  readonly command: readonly string[];
}

/**
 * Write a launcher at a path that extension updates do not change; return the path.
 *
 * Codex is configured with this path, so updates keep the connection and the user's trust in it.
 */
export async function writeLauncher({ folder, storage }: Seeker): Promise<string> {
  const path = join(storage, "bundled", "launch.py");
  const text = launcherText(join(folder, "bundled", "launch.py"));
  if ((await readFile(path, "utf8").catch(() => "")) !== text) {
    await mkdir(dirname(path), { recursive: true });
    const made = `${path}.${process.pid}`;
    await writeFile(made, text);
    await rename(made, path);
  }
  return path;
}

/** Start the process; rejects if it cannot be started. */
export async function begin(
  [program = "", ...args]: readonly string[],
  seeker: Seeker,
): Promise<ChildProcess> {
  const { folder, log } = seeker;
  log.info(`starting ${[program, ...args].join(" ")}`);
  // The server looks for Codex on the PATH.
  const { PATH = "" } = process.env;
  const codex = settings.path("codexPath");
  const path = [...(codex === "" ? [] : [dirname(codex)]), PATH];
  const launcher = await writeLauncher(seeker);
  const env = { ...process.env, PATH: path.join(delimiter), [LAUNCHER]: launcher };
  const child = spawn(program, args, { cwd: folder, env, windowsHide: true });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.once("exit", (code, signal) => {
    log.info(`server process ended: ${signal ?? `exit code ${code}`}`);
  });
  // Ignore errors from writing to a server that has just ended.
  child.stdin.on("error", (error) => log.debug(`server process: ${error.message}`));
  createInterface({ input: child.stderr }).on("line", (line) => passOn(line, log));
  return child;
}

function passOn(line: string, log: vscode.LogOutputChannel): void {
  const [, level, text] = /^(DEBUG|INFO|WARNING) (.*)$/.exec(line) ?? [];
  if (text === undefined) {
    log.error(line);
  } else if (level === "WARNING") {
    log.warn(text);
  } else {
    log.debug(text);
  }
}

function attemptText({ candidate, version, reason }: Attempt): string {
  const what = `${candidate.command.join(" ")} (${candidate.origin})`;
  return reason === null ? `found ${what}: Python ${version}` : `not ${what}: ${reason}`;
}
