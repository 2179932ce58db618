/** The source of a session that was made from another one and has no turn of its own yet. */

import type { Branches, SessionSummary, Window } from "../../client/protocol.ts";
import { madeWords, titleOf } from "../../sessions/model/branches.ts";

/** The context in use in the source and in this session, and the source itself. */
export interface Begun {
  readonly sourceId: string;
  /** Empty if the source no longer exists. */
  readonly source: string;
  /** How the session was made, for example `Compacted`. */
  readonly made: string;
  readonly before: number | null;
  readonly after: number | null;
  readonly isEstimate: boolean;
}

/** Return null for a session that was not made from another one. */
export function begunFrom(
  { contextTokens, contextTokensSource }: SessionSummary,
  { source }: Branches,
  windows: readonly Window[],
): Begun | null {
  if (source === null) {
    return null;
  }
  const made = madeWords(source.kind, source.mode);
  const opened = windows.findLast(({ tokensBefore }) => tokensBefore !== null);
  return {
    sourceId: source.sessionId,
    source: source.available ? titleOf(source.title, source.sessionId) : "",
    made: `${made.charAt(0).toUpperCase()}${made.slice(1)}`,
    before: source.kind === "compaction" ? (opened?.tokensBefore ?? null) : null,
    after: contextTokens ?? opened?.tokensAfter ?? null,
    isEstimate: contextTokensSource === "estimated",
  };
}
