/** Which command is the server, and how its process is started and read. */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type * as vscode from "vscode";
import { type Attempt, findPython, ISOLATED } from "./install.ts";
import * as settings from "./settings.ts";

/** Where the interpreter that answered last time is kept, until it fails. */
const REMEMBERED = "python";

/** Who looks for an interpreter: the extension's folder, its memory, its log. */
export interface Seeker {
  readonly folder: string;
  readonly memory: vscode.Memento;
  readonly log: vscode.LogOutputChannel;
}

/** The command that is the server; null when no interpreter can run the one that came along. */
export async function serverCommand(seeker: Seeker): Promise<readonly string[] | null> {
  const named = settings.serverCommand();
  if (named !== null) {
    return named;
  }
  const { folder, memory, log } = seeker;
  const launcher = join(folder, "bundled", "launch.py");
  const sources = {
    setting: settings.pythonSetting(),
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

/** Look anew next time; returns whether there was something to forget. */
export async function forget({ memory }: Seeker): Promise<boolean> {
  const had = memory.get(REMEMBERED) !== undefined;
  await memory.update(REMEMBERED, undefined);
  return had;
}

interface Remembered {
  /** How it was found: with other settings it does not count. */
  readonly key: string;
  readonly command: readonly string[];
}

/** Begin the process; rejects when it cannot even begin. */
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
  // Writing to a server that has just died is no fault of the editor.
  child.stdin.on("error", (error) => log.debug(`server process: ${error.message}`));
  createInterface({ input: child.stderr }).on("line", (line) => passOn(line, log));
  return child;
}

/** Write one of the server's log lines, at its level. */
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
