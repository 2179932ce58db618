/** The commands about restores: each reads what it was called with, and passes it on. */

import type { Commands, House } from "./house.ts";
import type { Place } from "./restoring.ts";

/** What the rows of the tree and others of our commands call these with. */
interface Called {
  readonly sessionId?: unknown;
  readonly checkpointId?: unknown;
  readonly operationId?: unknown;
  readonly session?: unknown;
  readonly marker?: unknown;
  readonly branch?: unknown;
}

/** Make the table of them. */
export function restoreCommands({ restores }: House): Commands {
  return {
    restoreMarker: (on?: Called) => restores.restore(placeOf(on)),
    continueWithContext: (on?: Called) => restores.restore(placeOf(on), "soft"),
    resetContext: (on?: Called) => restores.restore(placeOf(on), "hard"),
    showRestoreDetails: (on?: Called) => restores.details(operationOf(on)),
    showRestores: (on?: Called) => restores.list(idIn(on?.session, "sessionId")),
  };
}

/** A checkpoint: named outright, or the one that a row stands for. */
function placeOf(on: Called | undefined): Place | null {
  const sessionId = idIn(on, "sessionId") ?? idIn(on?.session, "sessionId");
  const checkpointId = idIn(on, "checkpointId") ?? idIn(on?.marker, "checkpointId");
  return sessionId === null || checkpointId === null ? null : { sessionId, checkpointId };
}

function operationOf(on: Called | undefined): string | null {
  return idIn(on, "operationId") ?? idIn(on?.branch, "operationId");
}

function idIn(some: unknown, name: string): string | null {
  const value = (Object(some) as Record<string, unknown>)[name];
  return typeof value === "string" ? value : null;
}
