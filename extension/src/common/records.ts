/** Records of a session, read piece by piece. */

import type { CancellationToken } from "vscode";
import type { Server } from "../client/client.ts";
import type { Recalled } from "../client/protocol.ts";

/** Maximum number of requests for a record: the server returns 8,000 characters at a time. */
const MOST_PIECES = 4;

/** Read a record and its text up to the limit; null if there is none. */
export async function readRecord(
  server: Server,
  sessionId: string,
  ref: string,
  token?: CancellationToken,
): Promise<{ readonly record: Recalled; readonly text: string } | null> {
  const recall = async (offset: number) => {
    const asked = { sessionId, ref, query: null, offset, limit: 1 };
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
  return { record, text: points.join("") };
}
