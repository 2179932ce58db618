/** Asks which sessions a person wants to see. */

import * as vscode from "vscode";
import type { Filter } from "./model/listing.ts";

const { l10n } = vscode;

/** Ask for a text to look for; undefined when the question was left. */
export async function askForSearch(filter: Filter): Promise<Filter | undefined> {
  const search = await vscode.window.showInputBox({
    title: l10n.t("Search Sessions"),
    prompt: l10n.t("In title, task, folder and id. Leave empty to see all."),
    value: filter.search,
  });
  return search === undefined ? undefined : { ...filter, search: search.trim() };
}

/** Ask which kinds of sessions; undefined when the question was left. */
export async function askForFilter(filter: Filter): Promise<Filter | undefined> {
  const kinds = [
    { key: "running", label: l10n.t("Only running sessions"), picked: filter.running },
    { key: "suspect", label: l10n.t("Only with suspect facts"), picked: filter.suspect },
    { key: "archived", label: l10n.t("Archived sessions"), picked: filter.archived },
  ];
  const chosen = await vscode.window.showQuickPick(kinds, {
    title: l10n.t("Filter Sessions"),
    canPickMany: true,
  });
  if (chosen === undefined) {
    return undefined;
  }
  const has = (key: string) => chosen.some((each) => each.key === key);
  return { ...filter, running: has("running"), suspect: has("suspect"), archived: has("archived") };
}
