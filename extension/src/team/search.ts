/** Searches the sessions in the remote; a chosen hit opens the page of its session there. */

import * as vscode from "vscode";
import { longRequest } from "../client/requests.ts";
import type { App } from "../common/app.ts";
import { inform } from "../common/messages.ts";
import { harmless } from "../common/model/text.ts";
import { isEnough } from "../search/model/rows.ts";
import { type HitChoice, hitChoices, hitsText, MOST_HITS, nothingText } from "./model/hits.ts";
import type { Remote } from "./model/texts.ts";
import type { RemotePages } from "./page.ts";

export async function searchRemote(app: App, remote: Remote, pages: RemotePages): Promise<void> {
  const text = await vscode.window.showInputBox({
    title: "Search Remote",
    placeHolder: "Text that was said or run, or the path of a file",
    prompt: "A capital makes case count. Each word is found at its beginning.",
    ignoreFocusOut: true,
    validateInput: (value) => (value === "" || isEnough(value) ? null : "Type a longer text."),
  });
  if (text === undefined || !isEnough(text)) {
    return;
  }
  const asked = { text, cwd: null, user: null, kinds: [], limit: MOST_HITS };
  const found = await longRequest(app.server, "Searching the remote", "searchRemote", asked);
  if (found === undefined) {
    return;
  }
  if (found.items.length === 0) {
    await inform(harmless(nothingText(text)));
    return;
  }
  const groups = hitChoices(found, text, remote, Date.now());
  const items = groups.flatMap(({ heading, choices }) => [
    { label: heading, kind: vscode.QuickPickItemKind.Separator },
    ...choices.map(quickPick),
  ]);
  const chosen = await vscode.window.showQuickPick<vscode.QuickPickItem | ChoiceItem>(items, {
    title: "Search Remote",
    placeHolder: hitsText(found),
    ignoreFocusOut: true,
  });
  if (chosen !== undefined && "choice" in chosen) {
    const { shared, hit } = chosen.choice;
    pages.show(shared, { text, hit });
  }
}

interface ChoiceItem extends vscode.QuickPickItem {
  readonly choice: HitChoice;
}

function quickPick(choice: HitChoice): ChoiceItem {
  const { label, description, icon } = choice;
  return { label, description, iconPath: new vscode.ThemeIcon(icon), choice };
}
