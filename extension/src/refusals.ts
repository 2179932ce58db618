/** What the server would not do, in words for a person. */

import { ResponseError } from "vscode-languageclient/node";
import type { Say } from "./model/text.ts";

/** The server's own word for why it would not; empty where the error is not a refusal of its. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

/** A sentence for a refusal or a failure; `hint` is the server's own advice, where it has one. */
export function saysRefusal(error: unknown, say: Say): string {
  if (error instanceof ResponseError) {
    const hint = error.data?.facts?.hint;
    const advice = typeof hint === "string" ? hint : "";
    const code = codeOf(error) || String(error.code);
    return `${missing(code, say) ?? say("Not done: {0}.", code)} ${advice}`.trim();
  }
  return error instanceof Error ? error.message : String(error);
}

/** What a person meets when somebody else took away what a page or a row still shows. */
function missing(code: string, say: Say): string | null {
  switch (code) {
    case "unknown_session":
      return say("This session is no longer here.");
    case "unknown_checkpoint":
      return say("This marker is no longer here.");
    case "unknown_turn":
      return say("This turn is no longer here.");
    case "unreadable_source":
      return say("The file of this session cannot be read.");
    default:
      return null;
  }
}
