/** Records of a session, read piece by piece. */

import type { CancellationToken } from "vscode";
import type { Server } from "../client/client.ts";
import type { Recalled } from "../client/protocol.ts";

/** Maximum number of requests for a record: the server returns 8,000 characters at a time. */
const MOST_PIECES = 4;

/** A record, the beginning of its text, and a later part of it. */
export interface ReadRecord {
  readonly record: Recalled;
  readonly text: string;
  readonly passage: Pick<Recalled, "offset" | "text"> | null;
}

/**
 * Read a record and its text up to the limit; null if there is none. If the line `near` is not in
 * that text, the part around it is read as well.
 */
export async function readRecord(
  server: Server,
  sessionId: string,
  ref: string,
  near: string | null = null,
  token?: CancellationToken,
): Promise<ReadRecord | null> {
  const recall = async (offset: number, near: string | null = null) => {
    const asked = { sessionId, ref, query: null, offset, near, limit: 1 };
    return (await server.request("recall", asked, token)).record;
  };
  const record = await recall(0);
  if (record === null) {
    return null;
  }
  const points = [...record.text];
  for (let piece = 1; piece < MOST_PIECES && points.length < record.total; piece++) {
    points.push(...((await recall(points.length))?.text ?? ""));
  }
  const text = points.join("");
  const isElsewhere = near !== null && points.length < record.total && !text.includes(near);
  return { record, text, passage: isElsewhere ? await recall(points.length, near) : null };
}
