/** The remedy buttons for the server's refusals; the server words the sentences. */

import { plain } from "../../common/model/text.ts";
import type { RefusalCode } from "../protocol.ts";

/** Remedy buttons by name. Each runs a command on the refused session, or else its caller acts. */
export const REMEDIES = {
  again: { label: "Try Again", command: null },
  force: { label: "Go On Anyway", command: null },
  redacted: { label: "Redact All of Them", command: null },
  unarchive: { label: "Unarchive", command: "unarchiveSession" },
  archive: { label: "Archive Instead", command: "archiveSession" },
  uncompact: { label: "Undo Compaction", command: "undoCompaction" },
  compactNew: { label: "Compact Session…", command: "compactSession" },
  goThere: { label: "Go to That Session", command: "goToSession" },
  codex: { label: "Choose Codex…", command: "chooseCodex" },
  changes: { label: "Show Changed Files", command: "showChanges" },
  setRemote: { label: "Set Remote…", command: "setRemote" },
  stateFolder: { label: "Choose State Folder…", command: "chooseStateFolder" },
  home: { label: "Open Settings", command: "chooseHome" },
  refresh: { label: "Refresh", command: "refresh" },
  doctor: { label: "Open Doctor Report", command: "doctor" },
  log: { label: "Show Log", command: "showLog" },
} as const;

export type Remedy = keyof typeof REMEDIES;

/** A sentence of the server, and the buttons below it. */
export interface RefusalWords {
  readonly sentence: string;
  readonly remedies: readonly Remedy[];
}

/** The buttons for each code that can occur in the editor. */
export const REFUSALS: Readonly<Partial<Record<RefusalCode, readonly Remedy[]>>> = {
  unknown_session: ["refresh"],
  unknown_turn: ["refresh"],
  unknown_checkpoint: ["refresh"],
  unknown_operation: ["refresh"],
  unknown_compaction: ["refresh"],
  unknown_note: ["refresh"],
  turn_not_complete: ["again", "force"],
  unreadable_source: ["doctor"],
  session_live: ["again"],
  has_own_turns: ["archive", "force"],
  evidence_unknown: ["again"],
  conflict: ["again"],
  codex_not_found: ["codex"],
  not_smaller: ["force"],
  codex_failed: ["again", "log"],
  timed_out: ["again"],
  blocked_by_hook: ["again"],
  storage_error: ["again", "log"],
  remote_unreachable: ["again"],
  remote_refused: ["again"],
  remote_full: ["again"],
  remote_damaged: ["again"],
};

/** The buttons for each reason of `conflict`, `blocked_by_hook` or `unreadable_source`. */
export const REASONS: Readonly<Record<string, readonly Remedy[]>> = {
  archived: ["unarchive"],
  refused: ["compactNew"],
  compacted: ["goThere"],
  imported: ["goThere"],
  exists: ["goThere"],
  undone: ["refresh"],
  later_compaction: [],
  later_window: ["refresh"],
  other_bytes: ["refresh"],
  without_effect: ["compactNew"],
  no_id: ["doctor"],
  not_ours: ["archive"],
  standing: ["uncompact"],
  referred_to: ["archive"],
  outside: [],
  gone: ["refresh"],
  settings: ["doctor"],
};

/** The buttons that force a refused action, on pages that support it. */
const FORCING: readonly Remedy[] = ["force", "redacted"];

/** Return the server's sentence and its buttons; forcing ones only if the caller supports them. */
export function refusalWords(
  code: string,
  message: string,
  facts: Readonly<Record<string, unknown>>,
  canForce = false,
): RefusalWords {
  const remedies = remediesOf(code, facts);
  const isAdvised =
    remedies.length === 0 || code === "turn_not_complete" || code.startsWith("remote_");
  const advice = isAdvised ? adviceIn(facts) : "";
  const offered = remedies.filter((remedy) => canForce || !FORCING.includes(remedy));
  return { sentence: [plain(message), advice].join(" ").trim(), remedies: offered };
}

function remediesOf(code: string, facts: Readonly<Record<string, unknown>>): readonly Remedy[] {
  const { reason, file, path, codexHome, kinds } = facts;
  const byReason = REASONS[String(reason)];
  if (
    byReason !== undefined &&
    ["conflict", "blocked_by_hook", "unreadable_source"].includes(code)
  ) {
    return byReason;
  }
  if (code === "unreadable_source" && typeof file === "string") {
    return [];
  }
  // A session with too many secrets can only be pushed redacted; one with a private key never.
  if (code === "secret_text" && kinds !== undefined) {
    return "private_key" in Object(kinds) ? [] : ["redacted"];
  }
  if (code === "remote_unreachable" && !("place" in facts)) {
    return ["setRemote"];
  }
  // The files of a folder that is not here cannot be restored, but the session has its patches.
  if (code === "missing_context" && "folder" in facts) {
    return ["changes"];
  }
  if (code === "storage_error" && typeof path === "string") {
    return ["stateFolder", "again"];
  }
  if (code === "codex_not_found" && typeof codexHome === "string") {
    return ["home"];
  }
  return REFUSALS[code as RefusalCode] ?? [];
}

/** The words for an unexpected failure of the server: only the log has details. */
export const FAILED: RefusalWords = {
  sentence: "That did not work. The log says more.",
  remedies: ["log"],
};

/** Return the server's advice, unless it is about the command line. */
function adviceIn({ hint }: Readonly<Record<string, unknown>>): string {
  return typeof hint === "string" && !/`|--\w/.test(hint) ? plain(hint) : "";
}

/** The titles of the extension's commands, by the verb of the command line. */
const TITLES: Readonly<Record<string, string>> = {
  archive: "Archive Session",
  compact: "Compact Session…",
  connect: "Connect Codex…",
  delete: "Delete Session Branch…",
  doctor: "Open Doctor Report",
  lineage: "Open Session Page",
  resume: "Resume in Terminal",
  unarchive: "Unarchive Session",
  uncompact: "Undo Compaction",
  view: "Show Checkpoint as Text",
  watch: "Restart Server",
};

/**
 * Translate the server's advice for the editor: command titles for commands, settings for options.
 */
export function inEditor(advice: string): string {
  return advice
    .replace(/, or `connect --remove`/g, ", or “Disconnect Codex…”")
    .replace(/`codex-checkpoints ([a-z]+)[^`]*`/g, (_, verb) => `“${TITLES[verb] ?? verb}”`)
    .replace(/--codex-home/g, "the setting codexCheckpoints.codexHome");
}
