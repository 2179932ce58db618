/**
 * Finds a Python for the bundled server by running the launcher's `probe` with each candidate: a
 * version manager puts shims on the PATH even for versions that are not installed.
 */

import { type ChildProcess, type ExecFileException, execFile } from "node:child_process";
import { once } from "node:events";
import { isAbsolute } from "node:path";

/** Options that keep the user's Python environment out of the server. */
export const ISOLATED = ["-I", "-S", "-X", "utf8", "-u"] as const;

export const PYTHON_SETTING = "codexCheckpoints.python";

/** An interpreter to try, and where it was found. */
export interface Candidate {
  readonly origin: string;
  readonly command: readonly string[];
}

/** The result of a candidate: a version, or a reason for its failure. */
export interface Attempt {
  readonly candidate: Candidate;
  readonly version: string | null;
  /** The interpreter's own path: the name on the PATH may be a slower version-manager shim. */
  readonly executable: string | null;
  readonly reason: string | null;
}

export interface Sources {
  readonly setting: string;
  /** The interpreter chosen in the Python extension; null without one. */
  readonly chosen: string | null;
  readonly platform: NodeJS.Platform;
}

/** How to run a candidate; `folder` is never in the workspace. */
export interface Surroundings {
  readonly launcher: string;
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly timeout: number;
}

export function candidates(sources: Sources): Candidate[] {
  const found: Candidate[] = [];
  if (sources.setting !== "") {
    found.push({ origin: PYTHON_SETTING, command: [sources.setting] });
  }
  if (sources.chosen !== null) {
    found.push({ origin: "the Python extension", command: [sources.chosen] });
  }
  const names = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];
  found.push(...names.map((name) => ({ origin: "PATH", command: [name] })));
  if (sources.platform === "win32") {
    found.push({ origin: "the launcher", command: ["py", "-3"] });
  }
  return found;
}

/** Try candidates until one works; `report` gets each attempt. */
export async function findPython(
  sources: Sources,
  around: Surroundings,
  report: (attempt: Attempt) => void,
): Promise<Attempt | null> {
  for (const candidate of candidates(sources)) {
    const attempt = await tryOut(candidate, around);
    report(attempt);
    if (attempt.reason === null) {
      return attempt;
    }
  }
  const last = await byUv(around);
  report(last);
  return last.reason === null ? last : null;
}

/** Usual install locations, which may be missing from the editor's PATH. */
const PLACES = ["/opt/homebrew/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3"];

/** Try all candidates and the usual install locations; usable ones have no reason. */
export async function allPythons(
  sources: Sources,
  around: Surroundings,
): Promise<readonly Attempt[]> {
  const places = sources.platform === "win32" ? [] : PLACES;
  const others = places.map((path) => ({ origin: "installed", command: [path] }));
  const all = [...candidates(sources), ...others];
  return Promise.all([...all.map((each) => tryOut(each, around)), byUv(around)]);
}

/** Run the launcher's probe with a candidate. */
export async function tryOut(candidate: Candidate, around: Surroundings): Promise<Attempt> {
  const [program = "", ...rest] = candidate.command;
  if (/[\\/]/.test(program) && !isAbsolute(program)) {
    return failed(candidate, "not an absolute path");
  }
  const run = await execute(program, [...rest, ...ISOLATED, around.launcher, "probe"], around);
  if (run.reason !== null) {
    return failed(candidate, run.reason);
  }
  const answer = readProbe(run.output);
  return answer === null
    ? failed(candidate, "it does not answer like a Python")
    : { candidate, ...answer };
}

/** Ask uv, which knows interpreters that are not on the PATH. */
async function byUv(around: Surroundings): Promise<Attempt> {
  const candidate = { origin: "uv", command: ["uv", "python", "find"] };
  const environment = { ...around.environment, UV_PYTHON_DOWNLOADS: "never" };
  const wanted = ["python", "find", "--no-project", ">=3.11,<3.15"];
  const run = await execute("uv", wanted, { ...around, environment });
  if (run.reason !== null) {
    return failed(candidate, run.reason);
  }
  return tryOut({ origin: "uv", command: [run.output.trim()] }, around);
}

function failed(candidate: Candidate, reason: string): Attempt {
  return { candidate, version: null, executable: null, reason };
}

function readProbe(output: string): Omit<Attempt, "candidate"> | null {
  try {
    const answer: unknown = JSON.parse(output.trim().split("\n").at(-1) ?? "");
    if (typeof answer === "object" && answer !== null && "version" in answer) {
      const reason = "reason" in answer && typeof answer.reason === "string" ? answer.reason : null;
      const named = "executable" in answer ? answer.executable : null;
      const executable = typeof named === "string" && isAbsolute(named) ? named : null;
      return { version: String(answer.version), executable, reason };
    }
  } catch {
    // Not JSON: the program is not a Python interpreter.
  }
  return null;
}

function execute(
  program: string,
  args: readonly string[],
  around: Surroundings,
): Promise<{ output: string; reason: string | null }> {
  return new Promise((resolve) => {
    const { folder: cwd, environment: env, timeout } = around;
    const options = { cwd, env, timeout, windowsHide: true };
    const done = (error: ExecFileException | null, output: string, errors: string) =>
      resolve({ output, reason: error === null ? null : whyNot(error, errors) });
    try {
      execFile(program, [...args], options, done).stdin?.end();
    } catch (error) {
      resolve({ output: "", reason: error instanceof Error ? error.message : String(error) });
    }
  });
}

function whyNot(error: ExecFileException, errors: string): string {
  if (error.code === "ENOENT") {
    return "not found";
  }
  if (error.killed === true) {
    return "no answer in time";
  }
  const [first = ""] = errors.trim().split("\n");
  const how =
    typeof error.code === "number" ? `exit code ${error.code}` : `${error.code ?? error.signal}`;
  return first === "" ? how : `${how}: ${first.slice(0, 200)}`;
}

/** Environment variable with the path of the launcher that Codex calls. */
export const LAUNCHER = "CODEX_CHECKPOINTS_LAUNCHER";

/** A launcher that runs the installed extension's launcher; hooks do nothing if there is none. */
export function launcherText(launcher: string): string {
  return `"""Starts Codex Checkpoints where its extension is now, which writes this file anew."""

import os
import sys

os.environ["${LAUNCHER}"] = os.path.abspath(__file__)
__file__ = ${JSON.stringify(launcher)}
if os.path.isfile(__file__):
    with open(__file__, "rb") as file:
        exec(compile(file.read(), __file__, "exec"))
elif sys.argv[1:2] != ["hook"]:
    sys.exit("Codex Checkpoints is no longer installed here.")
`;
}

// --- the end of a process --------------------------------------------------------------------------

const PATIENCE_MS = 2000;

/** End a process, by force if need be; it has ended on return. */
export async function end(child: ChildProcess, patience = PATIENCE_MS): Promise<void> {
  if (!hasEnded(child)) {
    child.kill();
    if (!(await endsWithin(child, patience))) {
      child.kill("SIGKILL"); // a hung process may ignore other signals
      await endsWithin(child, patience);
    }
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

async function endsWithin(child: ChildProcess, ms: number): Promise<boolean> {
  try {
    await once(child, "exit", { signal: AbortSignal.timeout(ms) });
    return true;
  } catch {
    return hasEnded(child);
  }
}
