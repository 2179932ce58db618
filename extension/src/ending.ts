/** The end of a process that was begun here: asked for first, then made. */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** How long a process that was told to end may take, before it is ended. */
const PATIENCE_MS = 2000;

/** End a process where the polite way did not; it is gone on return. */
export async function end(child: ChildProcess, patience = PATIENCE_MS): Promise<void> {
  if (!hasEnded(child)) {
    child.kill();
    if (!(await endsWithin(child, patience))) {
      child.kill("SIGKILL"); // one that hangs may hear nothing else
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
