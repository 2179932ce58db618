/** Texts about portable packs. */

import type { SessionSummary } from "../../client/protocol.ts";
import { fileName, subject } from "../../common/model/text.ts";

export function packName(session: SessionSummary): string {
  return `${fileName(subject(session)).replace(/…$/, "")}.pack.json`;
}
