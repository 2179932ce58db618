/** The server's refusals for people: a sentence for each, and the button that mends it. */

import type { RefusalCode } from "../protocol.ts";
import { plain } from "./text.ts";

/** Buttons by name: a command, on the session that was refused, or what the caller does again. */
export const REMEDIES = {
  again: { label: "Try Again", command: null },
  force: { label: "Go On Anyway", command: null },
  unarchive: { label: "Unarchive", command: "unarchiveSession" },
  archive: { label: "Archive Instead", command: "archiveSession" },
  uncompact: { label: "Undo Compaction", command: "undoCompaction" },
  compactNew: { label: "Compact Session…", command: "compactSession" },
  goThere: { label: "Go to That Session", command: "goToSession" },
  codex: { label: "Choose Codex…", command: "chooseCodex" },
  home: { label: "Open Settings", command: "chooseHome" },
  refresh: { label: "Refresh", command: "refresh" },
  doctor: { label: "Open Doctor Report", command: "doctor" },
  log: { label: "Show Log", command: "showLog" },
} as const;

export type Remedy = keyof typeof REMEDIES;

/** A sentence and its buttons; where there is none, the reason why nothing mends it. */
export type Words = { readonly sentence: string } & (
  | { readonly remedies: readonly Remedy[] }
  | { readonly alone: string }
);

const by = (sentence: string, ...remedies: readonly Remedy[]): Words => ({ sentence, remedies });
const alone = (sentence: string, why: string): Words => ({ sentence, alone: why });

export const REFUSALS: Readonly<Record<RefusalCode, Words>> = {
  unknown_session: by("This session is no longer there.", "refresh"),
  unknown_turn: by("This turn is no longer there: it was rolled back.", "refresh"),
  unknown_checkpoint: by("This marker is no longer there.", "refresh"),
  unknown_operation: by("This restore is not on record here.", "refresh"),
  unknown_compaction: by("This compaction is not on record here.", "refresh"),
  unknown_note: by("This note is no longer there.", "refresh"),
  unknown_ref: alone(
    "This record is no longer there, or is one that is never shown.",
    "instructions and reasoning are never shown",
  ),
  ambiguous_session: alone(
    "Several sessions begin with this ID.",
    "the editor names sessions by their whole id",
  ),
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
  invalid_payload: alone("This is not valid.", "the sentence says what is wrong"),
  limit_exceeded: alone("This is too large.", "a smaller one is needed"),
  secret_text: alone(
    "This looks like a password or a key, and such texts are never kept.",
    "another text is needed",
  ),
  policy_text: alone(
    "This reads like an instruction, and notes hold only what is true or was decided.",
    "another text is needed",
  ),
  evidence_missing: alone("A note needs evidence.", "the editor always asks for it"),
  evidence_unknown: by("The session no longer has what was chosen as evidence.", "again"),
  depends_on_missing: alone(
    "Codex never opened this file in this session.",
    "other evidence is needed",
  ),
  stale_read: alone(
    "The file has changed since Codex read it, so it cannot be evidence now.",
    "other evidence is needed",
  ),
  forged_hash: alone("The hash is not that of the file.", "the editor sends no hashes"),
  supersedes_unknown: by("The decision that this one replaces is no longer there.", "again"),
  conflict: by("The session has changed in the meantime.", "again"),
  missing_context: alone("This session has no messages yet.", "a message to Codex is needed"),
  codex_not_found: by("Codex was not found on this machine.", "codex"),
  not_smaller: by("The context would not become smaller.", "force"),
  item_too_large: alone(
    "Your newest message alone does not fit into the context window.",
    "nothing of a message is left out in secret",
  ),
  unsupported_placement: alone(
    "A session cannot be compacted at this point.",
    "the editor compacts between turns only",
  ),
  codex_failed: by("Codex did not write a summary.", "again", "log"),
  timed_out: by("It took too long.", "again"),
  no_preview: alone("A summary that Codex writes has no preview.", "a preview asks no model"),
  blocked_by_hook: by("A hook of yours stopped it.", "again"),
  storage_error: by("A file could not be read or written.", "again", "log"),
  cancelled: alone("Cancelled. Nothing was written.", "it was asked for"),
};

/** The reasons of a `conflict`, and of `blocked_by_hook`. */
export const REASONS: Readonly<Record<string, Words>> = {
  archived: by("This session is archived.", "unarchive"),
  compacted: by("This session was compacted in the meantime.", "goThere"),
  imported: by("This pack was imported already.", "goThere"),
  exists: by("This session already exists.", "goThere"),
  undone: by("This compaction was undone already.", "refresh"),
  later_compaction: alone(
    "The session was compacted again since. Undo the later compaction first.",
    "the rows of the session show which",
  ),
  gone_on: by("The session has gone on in the meantime.", "again"),
  later_window: alone(
    "Codex has compacted the session since, so this compaction cannot be undone.",
    "what Codex wrote is never taken out",
  ),
  other_bytes: alone(
    "The session's file was rewritten since, so this compaction cannot be undone.",
    "the old history is not known for sure",
  ),
  without_effect: by(
    "Codex would ignore what is added to this session. Use a new session.",
    "compactNew",
  ),
  no_id: by("The session's file does not hold a valid ID.", "doctor"),
  not_ours: by("Only sessions that were made here can be deleted.", "archive"),
  standing: by("The compaction that made this session is in force. Undo it first.", "uncompact"),
  referred_to: by("Other sessions were made from this one, so it is not deleted.", "archive"),
  older_file: by("This is an older file of its session.", "refresh"),
  outside: alone("This session lies outside Codex's folder.", "nothing is stored for it"),
  folder: alone("This is a folder, not a file.", "another file is needed"),
  file_exists: alone("This file already exists.", "the editor asks before"),
  gone: by("The session of this marker is no longer there.", "refresh"),
  settings: by("The file config.toml cannot be read, and it may name hooks.", "doctor"),
};

export interface RefusalWords {
  readonly sentence: string;
  readonly remedies: readonly Remedy[];
}

/** The sentence and the buttons for a refusal; `force` among them only for who can do it. */
export function refusalWords(
  code: string,
  facts: Readonly<Record<string, unknown>>,
  canForce = false,
): RefusalWords {
  const words = wordsOf(code, facts) ?? by("That did not work. The log says more.", "log" as const);
  const remedies = "remedies" in words ? words.remedies : [];
  const advice = remedies.length === 0 ? adviceIn(facts) : "";
  const offered = remedies.filter((remedy) => canForce || remedy !== "force");
  return { sentence: [words.sentence, advice].join(" ").trim(), remedies: offered };
}

export function refusalText(code: string, facts: Readonly<Record<string, unknown>>): string {
  return refusalWords(code, facts).sentence;
}

function wordsOf(code: string, facts: Readonly<Record<string, unknown>>): Words | undefined {
  const { reason, file, codexHome, problems, rule } = facts;
  const byReason = REASONS[String(reason)];
  if (
    byReason !== undefined &&
    ["conflict", "blocked_by_hook", "unreadable_source"].includes(code)
  ) {
    return byReason;
  }
  if (code === "unreadable_source" && typeof file === "string") {
    return alone("This file cannot be read.", "another file is needed");
  }
  if (code === "codex_not_found" && typeof codexHome === "string") {
    return by(`There is no folder of Codex at ${plain(codexHome)}.`, "home");
  }
  if (code === "invalid_payload" && rule === undefined && Array.isArray(problems)) {
    return alone(`This is not valid: ${plain(problems.join(", "))}.`, "it says what");
  }
  return REFUSALS[code as RefusalCode];
}

/** The server's advice, unless it is about the command line. */
function adviceIn({ hint }: Readonly<Record<string, unknown>>): string {
  return typeof hint === "string" && !/`|--\w/.test(hint) ? plain(hint) : "";
}

/** The titles of our commands, by the verb of the command line. */
const TITLES: Readonly<Record<string, string>> = {
  archive: "Archive Session",
  connect: "Connect Codex…",
  doctor: "Open Doctor Report",
  lineage: "Show Lineage…",
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
