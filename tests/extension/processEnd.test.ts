import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { end } from "../../extension/src/client/install.ts";

const POSIX = { skip: process.platform === "win32" ? "nothing is asked there, only ended" : false };

/** Start a program that keeps running when its input closes; it is running on return. */
async function program(before: string): Promise<ChildProcess> {
  const source = `${before}; setInterval(() => {}, 1000); console.log("here");`;
  const child = spawn(process.execPath, ["-e", source], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}

/** Check whether a process still exists. */
function isThere({ pid }: ChildProcess): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

test("a process that ignores messages is killed after the timeout", POSIX, async () => {
  const child = await program('process.on("SIGTERM", () => console.log("never"))');

  await end(child, 200);

  assert.equal(child.signalCode, "SIGKILL");
  assert.equal(isThere(child), false);
});

test("a suspended process is killed after the timeout", POSIX, async () => {
  const child = await program("");
  process.kill(child.pid ?? 0, "SIGSTOP");

  await end(child, 200);

  assert.equal(child.signalCode, "SIGKILL");
  assert.equal(isThere(child), false);
});

test("a process that ends on request is not awaited any longer", POSIX, async () => {
  const child = await program('process.on("SIGTERM", () => process.exit(7))');

  await end(child, 60_000);

  assert.deepEqual([child.exitCode, child.signalCode], [7, null]);
  assert.equal(isThere(child), false);
});

test("an ended process is left alone", async () => {
  const child = await program("process.stdin.on('data', () => process.exit(0))");
  child.stdin?.write("end");
  await once(child, "exit");

  await end(child, 60_000);

  assert.deepEqual([child.exitCode, child.signalCode], [0, null]);
});
