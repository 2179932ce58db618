/** Which sessions a person wants to see, and how as many as are shown are asked for. */

import type { SessionList, SessionSummary, SessionsParams } from "../protocol.ts";
import { dotted, plain } from "./text.ts";

/** Which sessions a person wants to see. */
export interface Filter {
  readonly search: string;
  readonly archived: boolean;
  readonly running: boolean;
  readonly suspect: boolean;
}

export const NO_FILTER: Filter = { search: "", archived: false, running: false, suspect: false };

/** Whether anything is left out. */
export function isFiltered(filter: Filter): boolean {
  return filter.search !== "" || filter.archived || filter.running || filter.suspect;
}

/** What is looked for, in short. */
export function filterText(filter: Filter): string {
  return dotted(
    filter.search === "" ? "" : `“${plain(filter.search)}”`,
    filter.running ? "running" : "",
    filter.suspect ? "suspect" : "",
    filter.archived ? "archived" : "",
  );
}

/** Whether a session is wanted, as far as the server does not decide that. */
export function isWanted(session: SessionSummary, filter: Filter): boolean {
  return (!filter.running || session.live) && (!filter.suspect || session.suspectFacts > 0);
}

/** Params with what is not said left open. */
export function sessionsParams(some: Partial<SessionsParams>): SessionsParams {
  const all = { archived: false, search: null, limit: null, cursor: null, workDoneToken: null };
  return { cwd: null, outside: [], ...all, ...some };
}

/** The sessions a part of the tree shows, and whether there are more. */
export interface Listing {
  readonly sessions: readonly SessionSummary[];
  readonly more: boolean;
}

/**
 * Ask for as many sessions as are to be shown. Where some are left out here, further pages are
 * asked for until there are enough.
 */
export async function collect(
  ask: (cursor: string | null, limit: number) => Promise<SessionList>,
  wanted: number,
  keep: ((session: SessionSummary) => boolean) | null,
): Promise<Listing> {
  const sessions: SessionSummary[] = [];
  let cursor: string | null = null;
  do {
    const page: SessionList = await ask(cursor, keep === null ? wanted : Math.max(wanted, 500));
    sessions.push(...(keep === null ? page.items : page.items.filter(keep)));
    cursor = page.nextCursor;
  } while (cursor !== null && sessions.length < wanted);
  return { sessions: sessions.slice(0, wanted), more: cursor !== null || sessions.length > wanted };
}
