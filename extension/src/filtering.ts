/** Asks which sessions a person wants to see. */

import * as vscode from "vscode";
import type { Filter } from "./model/listing.ts";

/** Ask for a text to look for; undefined when the question was left. */
export async function askForSearch(filter: Filter): Promise<Filter | undefined> {
  const search = await vscode.window.showInputBox({
    title: "Search Sessions",
    prompt: "In title, task, folder and id. Leave empty to see all.",
    value: filter.search,
  });
  return search === undefined ? undefined : { ...filter, search: search.trim() };
}

/** Ask which kinds of sessions; undefined when the question was left. */
export async function askForFilter(filter: Filter): Promise<Filter | undefined> {
  const kinds = [
    { key: "running", label: "Only running sessions", picked: filter.running },
    { key: "suspect", label: "Only with suspect facts", picked: filter.suspect },
    { key: "archived", label: "Archived sessions", picked: filter.archived },
  ];
  const chosen = await vscode.window.showQuickPick(kinds, {
    title: "Filter Sessions",
    canPickMany: true,
  });
  if (chosen === undefined) {
    return undefined;
  }
  const has = (key: string) => chosen.some((each) => each.key === key);
  return { ...filter, running: has("running"), suspect: has("suspect"), archived: has("archived") };
}
