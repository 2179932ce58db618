/** Finds the command of the server, starts it and reads its log. */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type * as vscode from "vscode";
import { type Attempt, findPython, ISOLATED } from "./install.ts";
import * as settings from "./settings.ts";

/** Where the working interpreter is remembered until it fails. */
const REMEMBERED = "python";

export interface Seeker {
  readonly folder: string;
  readonly memory: vscode.Memento;
  readonly log: vscode.LogOutputChannel;
}

/** The server's command; null if no interpreter can run the bundled one. */
export async function serverCommand(seeker: Seeker): Promise<readonly string[] | null> {
  const named = settings.serverCommand();
  if (named !== null) {
    return named;
  }
  const { folder, memory, log } = seeker;
  const launcher = join(folder, "bundled", "launch.py");
  const sources = {
    setting: settings.path("python"),
    chosen: await settings.pythonExtensionChoice(),
    platform: process.platform,
  };
  const key = JSON.stringify([launcher, sources]);
  const remembered = memory.get<Remembered>(REMEMBERED);
  if (remembered?.key === key) {
    log.info(`again ${remembered.command.join(" ")}`);
    return [...remembered.command, ...ISOLATED, launcher, "serve"];
  }
  const around = { launcher, folder, environment: process.env, timeout: 10_000 };
  const found = await findPython(sources, around, (attempt) => log.info(attemptText(attempt)));
  if (found === null) {
    return null;
  }
  const { command } = found.candidate;
  await memory.update(REMEMBERED, { key, command } satisfies Remembered);
  return [...command, ...ISOLATED, launcher, "serve"];
}

/** Whether a server was started on this machine before, by whatever version. */
export function hasRunBefore(memory: vscode.Memento): boolean {
  return memory.get(REMEMBERED) !== undefined;
}

/** Forget the interpreter; false if none was remembered. */
export async function forget({ memory }: Seeker): Promise<boolean> {
  const had = memory.get(REMEMBERED) !== undefined;
  await memory.update(REMEMBERED, undefined);
  return had;
}

interface Remembered {
  /** The settings of the search; the memory holds for these only. */
  readonly key: string;
  readonly command: readonly string[];
}

/** Start the process; rejects if it cannot be started. */
export async function begin(
  [program = "", ...args]: readonly string[],
  folder: string,
  log: vscode.LogOutputChannel,
): Promise<ChildProcess> {
  log.info(`starting ${[program, ...args].join(" ")}`);
  const child = spawn(program, args, { cwd: folder, windowsHide: true });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.once("exit", (code, signal) => {
    log.info(`server process ended: ${signal ?? `exit code ${code}`}`);
  });
  // Writing to a server that has just ended is no error here.
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
