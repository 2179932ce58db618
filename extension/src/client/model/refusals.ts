/** The server's refusals for people: a sentence for each, and the button that mends it. */

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

/** A sentence and its buttons. */
export interface RefusalWords {
  readonly sentence: string;
  readonly remedies: readonly Remedy[];
}

const by = (sentence: string, ...remedies: readonly Remedy[]): RefusalWords => ({
  sentence,
  remedies,
});

/** The codes that a person can meet in the editor. */
export const REFUSALS: Readonly<Partial<Record<RefusalCode, RefusalWords>>> = {
  unknown_session: by("This session is no longer there.", "refresh"),
  unknown_turn: by("This turn is no longer there: it was rolled back.", "refresh"),
  unknown_checkpoint: by("This marker is no longer there.", "refresh"),
  unknown_operation: by("This restore is not on record here.", "refresh"),
  unknown_compaction: by("This compaction is not on record here.", "refresh"),
  unknown_note: by("This note is no longer there.", "refresh"),
  unknown_ref: by("This record is no longer there, or is one that is never shown."),
  turn_not_complete: by("The last turn has not ended yet.", "again", "force"),
  unreadable_source: by("The file of this session cannot be read.", "doctor"),
  session_live: by(
    "Codex or another program has this session open. Close it there first.",
    "again",
  ),
  has_own_turns: by(
    "You continued this session: your own turns would be deleted with it.",
    "archive",
    "force",
  ),
  invalid_payload: by("This is not valid."),
  limit_exceeded: by("This is too large."),
  secret_text: by("This looks like a password or a key, and such texts are never kept."),
  policy_text: by(
    "This reads like an instruction, and notes hold only what is true or was decided.",
  ),
  evidence_unknown: by("The session no longer has what was chosen as evidence.", "again"),
  depends_on_missing: by("Codex never opened this file in this session."),
  stale_read: by("The file has changed since Codex read it, so it cannot be evidence now."),
  conflict: by("The session has changed in the meantime.", "again"),
  missing_context: by("This session has no messages yet."),
  codex_not_found: by("Codex was not found on this machine.", "codex"),
  not_smaller: by("The context would not become smaller.", "force"),
  item_too_large: by("Your newest message alone does not fit into the context window."),
  codex_failed: by("Codex did not write a summary.", "again", "log"),
  timed_out: by("It took too long.", "again"),
  blocked_by_hook: by("A hook of yours stopped it.", "again"),
  storage_error: by("A file could not be read or written.", "again", "log"),
  never_pushed: by("Sessions of this folder are never pushed."),
  remote_unreachable: by("The remote cannot be reached.", "again"),
  remote_refused: by("The remote does not permit this.", "again"),
  remote_newer: by("A newer version of Codex Checkpoints made the remote."),
  remote_full: by("The remote has no space left.", "again"),
  remote_damaged: by("The session in the remote is damaged, or has not arrived yet.", "again"),
};

const NOT_UNDONE = by(
  "The session has gone on since, so this compaction cannot be undone.",
  "refresh",
);

/** The reasons of a `conflict`, and of `blocked_by_hook`. */
export const REASONS: Readonly<Record<string, RefusalWords>> = {
  archived: by("This session is archived.", "unarchive"),
  refused: by(
    "Codex cannot resume this session: its file is damaged. Compact it into a new one instead.",
    "compactNew",
  ),
  compacted: by("This session was compacted in the meantime.", "goThere"),
  imported: by("This pack was imported already.", "goThere"),
  exists: by("This session already exists.", "goThere"),
  undone: by("This compaction was undone already.", "refresh"),
  later_compaction: by("The session was compacted again since. Undo the later compaction first."),
  later_window: NOT_UNDONE,
  other_bytes: NOT_UNDONE,
  without_effect: by(
    "Codex would ignore what is added to this session. Use a new session.",
    "compactNew",
  ),
  no_id: by("The session's file does not hold a valid ID.", "doctor"),
  not_ours: by("Only sessions that were made here can be deleted.", "archive"),
  standing: by("The compaction that made this session is in force. Undo it first.", "uncompact"),
  referred_to: by("Other sessions were made from this one, so it is not deleted.", "archive"),
  outside: by("This session lies outside Codex's folder."),
  gone: by("The session of this marker is no longer there.", "refresh"),
  settings: by("The file config.toml cannot be read, and it may name hooks.", "doctor"),
};

/** The buttons of a page that can do the refused thing all the same. */
const FORCING: readonly Remedy[] = ["force", "redacted"];

/**
 * The sentence and the buttons for a refusal; those that force it only for who can do it.  The
 * server's own `message` counts for a remote: it names the place and the reason.
 */
export function refusalWords(
  code: string,
  facts: Readonly<Record<string, unknown>>,
  canForce = false,
  message = "",
): RefusalWords {
  const { sentence, remedies } =
    (code.startsWith("remote_") ? remoteWords(code, facts, message) : wordsOf(code, facts)) ??
    by("That did not work. The log says more.", "log");
  const advice = remedies.length === 0 ? adviceIn(facts) : "";
  const offered = remedies.filter((remedy) => canForce || !FORCING.includes(remedy));
  return { sentence: [sentence, advice].join(" ").trim(), remedies: offered };
}

export function refusalText(code: string, facts: Readonly<Record<string, unknown>>): string {
  return refusalWords(code, facts).sentence;
}

function wordsOf(code: string, facts: Readonly<Record<string, unknown>>): RefusalWords | undefined {
  const { reason, file, path, codexHome, problems, rule, kinds } = facts;
  const byReason = REASONS[String(reason)];
  if (
    byReason !== undefined &&
    ["conflict", "blocked_by_hook", "unreadable_source"].includes(code)
  ) {
    return byReason;
  }
  if (code === "unreadable_source" && typeof file === "string") {
    return by("This file cannot be read.");
  }
  if (code === "missing_context" && "folder" in facts) {
    return by("The folder of this session is not on this machine.");
  }
  if (code === "secret_text" && kinds !== undefined) {
    return secretWords(Object.entries(Object(kinds)));
  }
  if (code === "storage_error" && typeof path === "string") {
    const why = `${plain(path)} cannot be read or written: ${plain(String(reason))}.`;
    return by(why, "stateFolder", "again");
  }
  if (code === "codex_not_found" && typeof codexHome === "string") {
    return by(`There is no folder of Codex at ${plain(codexHome)}.`, "home");
  }
  if (code === "invalid_payload" && rule === undefined && Array.isArray(problems)) {
    return by(`This is not valid: ${plain(problems.join(", "))}.`);
  }
  return REFUSALS[code as RefusalCode];
}

/** A remote's refusal in the server's words, with its advice. */
function remoteWords(
  code: string,
  facts: Readonly<Record<string, unknown>>,
  message: string,
): RefusalWords | undefined {
  const known = REFUSALS[code as RefusalCode];
  if (!("place" in facts) && code === "remote_unreachable") {
    return by("No remote is set on this machine.", "setRemote");
  }
  if (known === undefined || message === "") {
    return known;
  }
  return by([plain(message), adviceIn(facts)].join(" ").trim(), ...known.remedies);
}

/** The secrets for which a session is not pushed: with a private key never, else only redacted. */
function secretWords(kinds: readonly (readonly [kind: string, count: unknown])[]): RefusalWords {
  if (kinds.some(([kind]) => kind === "private_key")) {
    return by("This session holds a private key.");
  }
  const each = kinds.map(([kind, number]) => `${plain(kind).replaceAll("_", " ")}: ${number}`);
  const what = `This session holds too many secrets to push it as it is (${each.join(", ")}).`;
  return by(`${what} You can have all of them redacted.`, "redacted");
}

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
