/** The server's refusals: the buttons that mend them. The sentences are the server's. */

import { plain } from "../../common/model/text.ts";
import type { RefusalCode } from "../protocol.ts";

/** Buttons by name: a command, on the session that was refused, or what the caller does again. */
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

/** The buttons of each code that a person can meet in the editor. */
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

/** The buttons by the reason of a `conflict`, of `blocked_by_hook` or of `unreadable_source`. */
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

/** The buttons of a page that can do the refused thing all the same. */
const FORCING: readonly Remedy[] = ["force", "redacted"];

/** The server's sentence with the buttons for it; those that force it only for who can do it. */
export function refusalWords(
  code: string,
  message: string,
  facts: Readonly<Record<string, unknown>>,
  canForce = false,
): RefusalWords {
  const remedies = remediesOf(code, facts);
  const isAdvised = remedies.length === 0 || code.startsWith("remote_");
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
  // A session with too many secrets is pushed only redacted, one with a private key never.
  if (code === "secret_text" && kinds !== undefined) {
    return "private_key" in Object(kinds) ? [] : ["redacted"];
  }
  if (code === "remote_unreachable" && !("place" in facts)) {
    return ["setRemote"];
  }
  if (code === "storage_error" && typeof path === "string") {
    return ["stateFolder", "again"];
  }
  if (code === "codex_not_found" && typeof codexHome === "string") {
    return ["home"];
  }
  return REFUSALS[code as RefusalCode] ?? [];
}

/** A failure of the server that is no refusal: only the log can say more. */
export const FAILED: RefusalWords = {
  sentence: "That did not work. The log says more.",
  remedies: ["log"],
};

/** The server's advice, unless it is about the command line. */
function adviceIn({ hint }: Readonly<Record<string, unknown>>): string {
  return typeof hint === "string" && !/`|--\w/.test(hint) ? plain(hint) : "";
}

/** The titles of our commands, by the verb of the command line. */
const TITLES: Readonly<Record<string, string>> = {
  archive: "Archive Session",
  compact: "Compact Session…",
  connect: "Connect Codex…",
  doctor: "Open Doctor Report",
  lineage: "Open Session Page",
  resume: "Resume in Terminal",
  unarchive: "Unarchive Session",
  uncompact: "Undo Compaction",
  view: "Show Checkpoint as Text",
  watch: "Restart Server",
};

/** Advice of the server in the editor's words: commands by their titles, options as settings. */
export function inEditor(advice: string): string {
  return advice
    .replace(/, or `connect --remove`/g, ", or “Disconnect Codex…”")
    .replace(/`codex-checkpoints ([a-z]+)[^`]*`/g, (_, verb) => `“${TITLES[verb] ?? verb}”`)
    .replace(/--codex-home/g, "the setting codexCheckpoints.codexHome");
}
