/** What the server would not do, in words for a person. */

import { ResponseError } from "vscode-languageclient/node";
import type { Say } from "./model/text.ts";

/** A sentence for a refusal or a failure; `hint` is the server's own advice, where it has one. */
export function saysRefusal(error: unknown, say: Say): string {
  if (error instanceof ResponseError) {
    const hint = error.data?.facts?.hint;
    const advice = typeof hint === "string" ? hint : "";
    return `${say("Not done: {0}.", error.data?.code ?? error.code)} ${advice}`.trim();
  }
  return error instanceof Error ? error.message : String(error);
}
