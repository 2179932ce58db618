import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { end } from "../../extension/src/client/install.ts";

const POSIX = { skip: process.platform === "win32" ? "nothing is asked there, only ended" : false };

/** Start a program that runs on, whatever its input does; it has begun when this returns. */
async function program(before: string): Promise<ChildProcess> {
  const source = `${before}; setInterval(() => {}, 1000); console.log("here");`;
  const child = spawn(process.execPath, ["-e", source], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}

/** Whether the system still knows a process. */
function isThere({ pid }: ChildProcess): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

test("a process that hears nothing but its end is gone after the time it has", POSIX, async () => {
  const child = await program('process.on("SIGTERM", () => console.log("never"))');

  await end(child, 200);

  assert.equal(child.signalCode, "SIGKILL");
  assert.equal(isThere(child), false);
});

test("a process that is stopped in the middle is gone after the time it has", POSIX, async () => {
  const child = await program("");
  process.kill(child.pid ?? 0, "SIGSTOP");

  await end(child, 200);

  assert.equal(child.signalCode, "SIGKILL");
  assert.equal(isThere(child), false);
});

test("a process that ends when it is told to is not waited for any longer", POSIX, async () => {
  const child = await program('process.on("SIGTERM", () => process.exit(7))');

  await end(child, 60_000);

  assert.deepEqual([child.exitCode, child.signalCode], [7, null]);
  assert.equal(isThere(child), false);
});

test("a process that has ended is left alone", async () => {
  const child = await program("process.stdin.on('data', () => process.exit(0))");
  child.stdin?.write("end");
  await once(child, "exit");

  await end(child, 60_000);

  assert.deepEqual([child.exitCode, child.signalCode], [0, null]);
});
