/** What the server would not do, in words for a person: by its code, and what its facts say. */

/** What is used of a refusal's facts. */
interface Facts {
  readonly hint?: unknown;
  /** The file that is no session's. */
  readonly file?: unknown;
  /** What the conflict is with. */
  readonly reason?: unknown;
}

/** A sentence for a refusal, and the server's own advice where it has one. */
export function refusalText(code: string, facts: Facts): string {
  const advice = typeof facts.hint === "string" ? facts.hint : "";
  return `${sentence(code, facts) ?? `Not done: ${code}.`} ${advice}`.trim();
}

function sentence(code: string, facts: Facts): string | null {
  switch (code) {
    // Somebody else took away what a page or a row still shows.
    case "unknown_session":
      return "This session is no longer here.";
    case "unknown_checkpoint":
      return "This marker is no longer here.";
    case "unknown_turn":
      return "This turn is no longer here.";
    case "unknown_operation":
      return "This restore is no longer here.";
    case "unknown_compaction":
      return "This compaction is no longer here.";
    case "unknown_note":
      return "This note is no longer here.";
    case "unreadable_source":
      return typeof facts.file === "string"
        ? "This file cannot be read."
        : "The file of this session cannot be read.";
    case "storage_error":
      return "Not done: a file could not be read or written.";
    case "session_live":
      return "Not done: another program has this session open.";
    case "turn_not_complete":
      return "Not done: the turn is not complete yet.";
    case "not_smaller":
      return "Not done: the context would not become smaller.";
    case "item_too_large":
      return "Not done: what has to stay does not fit into the context window.";
    case "codex_failed":
      return "Not done: Codex made no summary.";
    case "timed_out":
      return "Not done: it took too long.";
    case "blocked_by_hook":
      return "Not done: a hook that runs before a compaction did not allow it.";
    case "conflict":
      return conflict(facts.reason);
    default:
      return null;
  }
}

/** What stands in the way; null where the code has to do. */
function conflict(reason: unknown): string | null {
  switch (reason) {
    case "imported":
      return "Not done: this pack was imported already.";
    case "undone":
      return "Not done: the compaction was taken back already.";
    case "later_compaction":
      return "Not done: a later compaction is to be taken back first.";
    case "gone_on":
    case "later_window":
      return "Not done: the session went on meanwhile.";
    default:
      return null;
  }
}
