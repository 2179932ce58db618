/** What the server would not do, out of the errors of the connection. */

import { ResponseError } from "vscode-languageclient/node";
import { refusalText } from "./model/refusal.ts";

/** The server's own word for why it would not; empty where the error is not a refusal of its. */
export function codeOf(error: unknown): string {
  return error instanceof ResponseError ? String(error.data?.code ?? "") : "";
}

/** A sentence for a refusal or a failure. */
export function saysRefusal(error: unknown): string {
  if (error instanceof ResponseError) {
    const code = codeOf(error) || String(error.code);
    return refusalText(code, Object(error.data?.facts));
  }
  return error instanceof Error ? error.message : String(error);
}
