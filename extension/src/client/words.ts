// Written by `python -m codex_checkpoints.doors.typescript` from sections/connect.py.

/** The ways in which Codex calls this extension. */
export const DOORS = {
  hook: "Hooks",
  mcp: "Memory tools",
} as const;

/** The problems of such a way. */
export const DOOR_PROBLEMS = {
  not_configured: "not connected",
  unreadable: "not known whether it is connected",
  program_missing: "the program that it calls is gone",
  outdated: "not as it would be connected now",
  failed: "the last call failed",
  no_hooks: "this Codex has no hooks that fit; update it",
  disabled: "switched off in Codex",
  untrusted: "waiting for you to trust it",
} as const;

/** The problems of Codex itself. */
export const CODEX_PROBLEMS = {
  codex_not_found: "not found on the PATH",
  timed_out: "gave no answer in time",
  codex_failed: "gave no answer",
  hooks_unknown: "has no hooks yet; update it",
} as const;

/** The trust of a user in a hook. */
export const TRUST = {
  trusted: "trusted",
  managed: "trusted by your organisation",
  untrusted: "not trusted yet",
  modified: "changed since you trusted it",
} as const;

export const NEVER_RAN = "never ran";
export const LAST_RAN = "last ran";
