/** The server's refusals for people: a sentence for each, and the button that mends it. */

import type { RefusalCode } from "../protocol.ts";
import { plain } from "./text.ts";

/** Buttons by name: a command, on the session that was refused, or what the caller does again. */
export const REMEDIES = {
  again: { label: "Try Again", command: null },
  force: { label: "Go On Anyway", command: null },
  unarchive: { label: "Unarchive", command: "unarchiveSession" },
  archive: { label: "Archive Instead", command: "archiveSession" },
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

const GONE = { remedies: ["refresh"] } as const;

export const REFUSALS: Readonly<Record<RefusalCode, Words>> = {
  unknown_session: { sentence: "This session is no longer there.", ...GONE },
  unknown_turn: { sentence: "This turn is no longer there: it was rolled back.", ...GONE },
  unknown_checkpoint: { sentence: "This marker is no longer there.", ...GONE },
  unknown_operation: { sentence: "This restore is not on record here.", ...GONE },
  unknown_compaction: { sentence: "This compaction is not on record here.", ...GONE },
  unknown_note: { sentence: "This note is no longer there.", ...GONE },
  unknown_ref: {
    sentence: "This record is no longer there, or is one that is never shown.",
    alone: "instructions and reasoning are never shown",
  },
  ambiguous_session: {
    sentence: "Several sessions begin with this ID.",
    alone: "the editor names sessions by their whole id",
  },
  turn_not_complete: { sentence: "The last turn has not ended yet.", remedies: ["again", "force"] },
  unreadable_source: {
    sentence: "The file of this session cannot be read.",
    remedies: ["doctor"],
  },
  session_live: {
    sentence: "Codex or another program has this session open. Close it there first.",
    remedies: ["again"],
  },
  has_own_turns: {
    sentence: "You continued this session: your own turns would be deleted with it.",
    remedies: ["archive", "force"],
  },
  invalid_payload: { sentence: "This is not valid.", alone: "the sentence says what is wrong" },
  limit_exceeded: { sentence: "This is too large.", alone: "a smaller one is needed" },
  secret_text: {
    sentence: "This looks like a password or a key, and such texts are never kept.",
    alone: "another text is needed",
  },
  policy_text: {
    sentence: "This reads like an instruction, and notes hold only what is true or was decided.",
    alone: "another text is needed",
  },
  evidence_missing: { sentence: "A note needs evidence.", alone: "the editor always asks for it" },
  evidence_unknown: {
    sentence: "The session no longer has what was chosen as evidence.",
    remedies: ["again"],
  },
  depends_on_missing: {
    sentence: "Codex never opened this file in this session.",
    alone: "other evidence is needed",
  },
  stale_read: {
    sentence: "The file has changed since Codex read it, so it cannot be evidence now.",
    alone: "other evidence is needed",
  },
  forged_hash: {
    sentence: "The hash is not that of the file.",
    alone: "the editor sends no hashes",
  },
  supersedes_unknown: {
    sentence: "The decision that this one replaces is no longer there.",
    remedies: ["again"],
  },
  conflict: { sentence: "The session has changed in the meantime.", remedies: ["again"] },
  missing_context: {
    sentence: "This session has no messages yet.",
    alone: "a message to Codex is needed",
  },
  codex_not_found: { sentence: "Codex was not found on this machine.", remedies: ["codex"] },
  not_smaller: { sentence: "The context would not become smaller.", remedies: ["force"] },
  item_too_large: {
    sentence: "Your newest message alone does not fit into the context window.",
    alone: "nothing of a message is left out in secret",
  },
  unsupported_placement: {
    sentence: "A session cannot be compacted at this point.",
    alone: "the editor compacts between turns only",
  },
  codex_failed: { sentence: "Codex did not write a summary.", remedies: ["again", "log"] },
  timed_out: { sentence: "It took too long.", remedies: ["again"] },
  no_preview: {
    sentence: "A summary that Codex writes has no preview.",
    alone: "a preview asks no model",
  },
  blocked_by_hook: { sentence: "A hook of yours stopped it.", remedies: ["again"] },
  storage_error: {
    sentence: "A file could not be read or written.",
    remedies: ["again", "log"],
  },
  cancelled: { sentence: "Cancelled. Nothing was written.", alone: "it was asked for" },
};

/** The reasons of a `conflict`, and of `blocked_by_hook`. */
export const REASONS: Readonly<Record<string, Words>> = {
  archived: { sentence: "This session is archived.", remedies: ["unarchive"] },
  compacted: { sentence: "This session was compacted in the meantime.", remedies: ["goThere"] },
  imported: { sentence: "This pack was imported already.", remedies: ["goThere"] },
  exists: { sentence: "This session already exists.", remedies: ["goThere"] },
  undone: { sentence: "This compaction was undone already.", ...GONE },
  later_compaction: {
    sentence: "The session was compacted again since. Undo the later compaction first.",
    alone: "the rows of the session show which",
  },
  gone_on: { sentence: "The session has gone on in the meantime.", remedies: ["again"] },
  later_window: {
    sentence: "Codex has compacted the session since, so this compaction cannot be undone.",
    alone: "what Codex wrote is never taken out",
  },
  other_bytes: {
    sentence: "The session's file was rewritten since, so this compaction cannot be undone.",
    alone: "the old history is not known for sure",
  },
  without_effect: {
    sentence: "Codex would ignore what is added to this session. Use a new session.",
    remedies: ["compactNew"],
  },
  no_id: {
    sentence: "The session's file does not hold a valid ID.",
    remedies: ["doctor"],
  },
  not_ours: {
    sentence: "Only sessions that were made here can be deleted.",
    remedies: ["archive"],
  },
  referred_to: {
    sentence: "Other sessions were made from this one, so it is not deleted.",
    remedies: ["archive"],
  },
  older_file: { sentence: "This is an older file of its session.", ...GONE },
  outside: {
    sentence: "This session lies outside Codex's folder.",
    alone: "nothing is stored for it",
  },
  folder: { sentence: "This is a folder, not a file.", alone: "another file is needed" },
  file_exists: { sentence: "This file already exists.", alone: "the editor asks before" },
  gone: { sentence: "The session of this marker is no longer there.", ...GONE },
  settings: {
    sentence: "The file config.toml cannot be read, and it may name hooks.",
    remedies: ["doctor"],
  },
};

export interface RefusalWords {
  readonly sentence: string;
  readonly remedies: readonly Remedy[];
}

/** The sentence and the buttons for a refusal. */
export function refusalWords(code: string, facts: Readonly<Record<string, unknown>>): RefusalWords {
  const words = wordsOf(code, facts) ?? {
    sentence: "That did not work. The log says more.",
    remedies: ["log" as const],
  };
  const remedies = "remedies" in words ? words.remedies : [];
  const advice = remedies.length === 0 ? adviceIn(facts) : "";
  return { sentence: [words.sentence, advice].join(" ").trim(), remedies };
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
    return { sentence: "This file cannot be read.", alone: "another file is needed" };
  }
  if (code === "codex_not_found" && typeof codexHome === "string") {
    return { sentence: `There is no folder of Codex at ${plain(codexHome)}.`, remedies: ["home"] };
  }
  if (code === "invalid_payload" && rule === undefined && Array.isArray(problems)) {
    return { sentence: `This is not valid: ${plain(problems.join(", "))}.`, alone: "it says what" };
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
  unarchive: "Unarchive Session",
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
