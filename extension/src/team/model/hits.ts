/** The hits of a search in the remote, as choices below the names of their sessions. */

import type { RemoteSession, SearchHit, SearchRemoteAnswer } from "../../client/protocol.ts";
import { age, counted, cut, dotted, iconless, plain } from "../../common/model/text.ts";
import { hitRow } from "../../search/model/rows.ts";
import { ownerText, type Remote, remoteTitle } from "./texts.ts";

/** Number of hits that are shown. */
export const MOST_HITS = 200;

/** A hit, and its session. */
export interface HitChoice {
  readonly label: string;
  readonly description: string;
  readonly icon: string;
  readonly shared: RemoteSession;
  readonly hit: SearchHit;
}

/** A session with hits: its name, and its choices. */
export interface SessionChoices {
  readonly heading: string;
  readonly choices: readonly HitChoice[];
}

/** Return the choices by session, the latest first. */
export function hitChoices(
  { items }: SearchRemoteAnswer,
  text: string,
  remote: Remote,
  now: number,
): readonly SessionChoices[] {
  return items.map(({ session, hits }) => {
    const name = cut(remoteTitle(session), 80);
    const whose = cut(ownerText(session, remote), 24);
    const heading = iconless(dotted(name, whose, age(session.updatedAt, now)));
    const choices = hits.map((hit) => {
      const { row } = hitRow(hit, text, now);
      const { description, icon } = row;
      return { label: iconless(row.label), description, icon, shared: session, hit };
    });
    return { heading, choices };
  });
}

/** Count the hits of a search: `3 hits in 2 sessions`. */
export function hitsText({ items, more }: SearchRemoteAnswer): string {
  const hits = items.reduce((sum, each) => sum + each.hits.length, 0);
  const sessions = counted(items.length, "1 session", `${items.length} sessions`);
  const found = `${counted(hits, "1 hit", `${hits} hits`)} in ${sessions}`;
  return more ? `The latest ${found}` : found;
}

/** Say that nothing was found. */
export function nothingText(text: string): string {
  const where = "prompts, answers, commands and paths of the sessions in the remote";
  return `“${cut(plain(text), 60)}” is not in the ${where}.`;
}
