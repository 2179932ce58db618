/** Does what a person asked for, and says in words why the server would not. */

import * as vscode from "vscode";
import { harmless } from "./model/text.ts";
import { saysRefusal } from "./refusals.ts";

/** Do it; a refusal becomes one notification, by `words` where those say more. */
export async function telling(
  work: () => Promise<void>,
  words: (error: unknown) => string | null = () => null,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    const sentence = words(error) ?? saysRefusal(error);
    void vscode.window.showWarningMessage(harmless(sentence));
  }
}

/** Say for a moment that something was done. */
export function tellDone(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, 3000);
}
