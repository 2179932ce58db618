/** The commands about a session and about the list of them. */

import * as vscode from "vscode";
import { chosenSession, onSession, tellNoSession } from "./chosenSession.ts";
import type { Document } from "./documents.ts";
import { setContext } from "./emptiness.ts";
import { askForFilter, askForSearch } from "./filtering.ts";
import type { Commands, House } from "./house.ts";
import { type Filter, isFiltered, NO_FILTER } from "./model/listing.ts";
import { isPlainId } from "./model/sessions.ts";
import { tellNoPlainId } from "./openCodex.ts";
import type { SessionSummary } from "./protocol.ts";
import type { Group, SessionNode } from "./sessionItem.ts";

/** Make the table of them. */
export function sessionCommands(house: House): Commands {
  const { tree, following, documents, sessions, compaction, resuming } = house;

  const on = (act: (session: SessionSummary) => Promise<void>) => onSession(following, act);
  const showing = (document: Document) => on((session) => documents.open(document, session));
  const copying = (text: (sessionId: string) => string) =>
    // What is pasted into a shell must be nothing but an id.
    on(async ({ sessionId }) =>
      isPlainId(sessionId) ? vscode.env.clipboard.writeText(text(sessionId)) : tellNoPlainId(),
    );
  const filter = (next: Filter | undefined) => {
    if (next !== undefined) {
      tree.filter = next;
      setContext("filtered", isFiltered(next));
    }
  };

  return {
    showView: showing("view"),
    showJson: showing("json"),
    copySessionId: copying((id) => id),
    copyResumeCommand: copying((id) => `codex resume ${id}`),
    compactSession: on((session) => compaction.compact(session)),
    undoCompaction: (node?: SessionNode) =>
      node?.kind === "window" && node.window.compactionId !== null
        ? compaction.undo(node.window.compactionId)
        : undefined,
    resumeSession: on((session) => resuming.resume(session)),
    showLosses: (node?: SessionNode) => {
      const session = node?.kind === "window" ? node.session : chosenSession(following, node);
      return session === null ? tellNoSession() : documents.open("losses", session);
    },
    renameSession: on((session) => sessions.rename(session)),
    archiveSession: on((session) => sessions.archive(session)),
    unarchiveSession: on((session) => sessions.unarchive(session)),
    search: async () => filter(await askForSearch(tree.filter)),
    filter: async () => filter(await askForFilter(tree.filter)),
    clearFilter: () => filter(NO_FILTER),
    loadMore: (group?: Group) => group && tree.showMore(group),
    showOthers: () => tree.showOthers(),
    follow: () => following.choose(null),
  };
}
