import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import {
  type Attempt,
  allPythons,
  candidates,
  findPython,
  LAUNCHER,
  launcherText,
  PYTHON_SETTING,
  type Sources,
  type Surroundings,
  tryOut,
} from "../../extension/src/client/install.ts";
import { pythonChoices } from "../../extension/src/client/model/interpreters.ts";

const NOT_HERE = { skip: process.platform === "win32" ? "these are shell scripts" : false };
const NOTHING: Sources = { setting: "", chosen: null, platform: "linux" };

let folder: string;
let around: Surroundings;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "interpreters-"));
  await mkdir(join(folder, "bin"));
  around = {
    launcher: join(folder, "launch.py"),
    folder,
    environment: { PATH: `${join(folder, "bin")}:/bin:/usr/bin` },
    timeout: 2000,
  };
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Put a program on the PATH that runs these shell lines. */
async function program(name: string, ...lines: string[]): Promise<string> {
  const path = join(folder, "bin", name);
  await writeFile(path, `#!/bin/sh\n${lines.join("\n")}\n`);
  await chmod(path, 0o755);
  return path;
}

function answering(version: string, reason: string | null = null): string {
  return `echo '${JSON.stringify({ version, executable: "x", reason })}'`;
}

async function find(sources: Sources): Promise<{ found: Attempt | null; told: string[] }> {
  const told: string[] = [];
  // The PATH only has the programs that a test puts there.
  const environment = { PATH: join(folder, "bin") };
  const found = await findPython(sources, { ...around, environment }, ({ candidate, reason }) =>
    told.push(`${candidate.command.join(" ")}: ${reason ?? "yes"}`),
  );
  return { found, told };
}

test("the setting comes first, then the Python extension's choice, then the PATH", () => {
  const all = candidates({ setting: "/opt/py", chosen: "/venv/py", platform: "win32" });
  assert.deepEqual(
    all.map(({ command }) => command.join(" ")),
    [
      ..."/opt/py,/venv/py,python3,python".split(","),
      ..."python3.14,python3.13,python3.12,python3.11".split(","),
      "py -3",
    ],
  );
  assert.equal(candidates(NOTHING).at(0)?.command.join(" "), "python3");
});

test(
  "the server runs with the interpreter's own executable, where that has a path",
  NOT_HERE,
  async () => {
    const executable = join(folder, "versions", "python");
    await program("python3", `echo '${JSON.stringify({ version: "3.12.1", executable })}'`);
    assert.equal((await find(NOTHING)).found?.executable, executable);

    await program("python3", answering("3.12.1"));
    assert.equal((await find(NOTHING)).found?.executable, null);
  },
);

test("a stale shim of a version manager is skipped", NOT_HERE, async () => {
  await program("python3", "echo 'pyenv: python3: command not found' >&2", "exit 127");
  await program("python", answering("3.12.1"));

  const { found, told } = await find(NOTHING);

  assert.equal(found?.version, "3.12.1");
  assert.deepEqual(told, [
    "python3: exit code 127: pyenv: python3: command not found",
    "python: yes",
  ]);
});

test("an interpreter that is too old says so itself", NOT_HERE, async () => {
  await program("python3", answering("3.8.18", "Python 3.8.18 is not supported"));
  await program("python3.11", answering("3.11.9"));

  const { found, told } = await find(NOTHING);

  assert.deepEqual(found?.candidate.command, ["python3.11"]);
  assert.equal(told[0], "python3: Python 3.8.18 is not supported");
});

test("a hanging interpreter times out, and a chatty one is not a Python", NOT_HERE, async () => {
  const hanging = await program("hanging", "exec sleep 30");
  const chatty = await program("chatty", "echo Welcome");
  const short = { ...around, timeout: 200 };

  const candidate = (path: string) => ({ origin: "a test", command: [path] });
  assert.equal((await tryOut(candidate(hanging), short)).reason, "no answer in time");
  assert.equal(
    (await tryOut(candidate(chatty), around)).reason,
    "it does not answer like a Python",
  );
});

test("an interpreter is probed in isolation from the user's environment", NOT_HERE, async () => {
  await program("python3", `echo "$@" > '${join(folder, "args")}'`, answering("3.13.0"));
  await find(NOTHING);
  const { readFile } = await import("node:fs/promises");

  assert.equal(
    (await readFile(join(folder, "args"), "utf8")).trim(),
    `-I -S -X utf8 -u ${around.launcher} probe`,
  );
});

test("a relative path is not run", NOT_HERE, async () => {
  const attempt = await tryOut({ origin: "a test", command: ["./bin/python3"] }, around);
  assert.equal(attempt.reason, "not an absolute path");
});

test("uv is asked last, and its interpreter is probed like the others", NOT_HERE, async () => {
  const python = await program("hidden", answering("3.13.5"));
  await program("uv", `test "$UV_PYTHON_DOWNLOADS" = never && echo '${python}'`);

  const { found, told } = await find(NOTHING);

  assert.deepEqual(found?.candidate, { origin: "uv", command: [python] });
  assert.equal(told.at(-2), "python3.11: not found");
});

test("all that can run the server are found, each attempt with its reason", NOT_HERE, async () => {
  const old = await program("python3", answering("3.9", "it is too old"));
  const good = await program("python3.12", `echo '{"version":"3.12.1","executable":"${old}"}'`);
  const environment = { PATH: join(folder, "bin") };

  const all = await allPythons({ ...NOTHING, setting: good }, { ...around, environment });

  const told = all.map(({ candidate, reason }) => [candidate.command[0], reason]);
  assert.deepEqual(told.slice(0, 2), [
    [good, null],
    ["python3", "it is too old"],
  ]);
  const choices = pythonChoices(all.filter(({ candidate }) => candidate.origin !== "installed"));
  assert.deepEqual(choices, [
    { program: old, label: "Python 3.12.1", description: `${old} · ${PYTHON_SETTING}` },
  ]);
});

test("without a usable interpreter every attempt has its reason", NOT_HERE, async () => {
  const { found, told } = await find({ ...NOTHING, setting: "/gone/python" });

  assert.equal(found, null);
  assert.deepEqual(told, [
    "/gone/python: not found",
    ...["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"].map(
      (name) => `${name}: not found`,
    ),
    "uv python find: not found",
  ]);
});

test("the permanent launcher runs the extension's one, and reports its own place", async () => {
  const [stable, own] = [join(folder, "stable.py"), join(folder, 'a "b" größe.py')];
  await writeFile(stable, launcherText(own));
  const lines = ["import os, sys", `print(os.environ["${LAUNCHER}"], __file__, sys.argv[1:])`];
  await writeFile(own, lines.join("\n"));
  const run = (...args: string[]) =>
    execFileSync("python3", ["-I", "-S", "-X", "utf8", stable, ...args], { encoding: "utf8" });

  assert.equal(run("hook", "x"), `${stable} ${own} ['hook', 'x']\n`);
  await rm(own);
  assert.equal(run("hook"), "");
  assert.throws(() => run("mcp"), /no longer installed/);
});
