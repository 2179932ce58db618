/** Commands for one session and for the list of sessions. */

import * as vscode from "vscode";
import { MAX_LABEL } from "../client/limits.ts";
import type { SessionSummary } from "../client/protocol.ts";
import { longRequest, showUndoable } from "../client/requests.ts";
import { setContext } from "../client/settings.ts";
import { type App, type Commands, onSession } from "../common/app.ts";
import { action, askToDo, runCommand, showDone } from "../common/messages.ts";
import { cut, dotted, plain, subject } from "../common/model/text.ts";
import { refuseId } from "../common/terminal.ts";
import {
  actionsOf,
  contextWords,
  type Filter,
  isFiltered,
  isPlainId,
  NO_FILTER,
} from "./model/rows.ts";
import type { Group } from "./tree.ts";

export function sessionCommands(app: App): Commands {
  const { server, tree, following, documents, reports } = app;
  const showing = (kind: string) =>
    onSession(app, async ({ sessionId }) => {
      reports.open(kind, { sessionId });
    });
  const copying = (text: (sessionId: string) => string) =>
    // Only a plain id may be pasted into a shell.
    onSession(app, async ({ sessionId }) =>
      isPlainId(sessionId) ? vscode.env.clipboard.writeText(text(sessionId)) : refuseId(),
    );
  const filter = (next: Filter) => {
    if (next !== tree.filter) {
      tree.filter = next;
      setContext("filtered", isFiltered(next));
    }
  };
  return {
    showView: showing("checkpoint"),
    showJson: onSession(app, (session) => documents.openJson(session)),
    openDigest: showing("digest"),
    copySessionId: copying((id) => id),
    copyResumeCommand: copying((id) => `codex resume ${id}`),
    renameSession: onSession(app, (session) => rename(app, session)),
    archiveSession: onSession(app, async (session) => {
      const { sessionId } = session;
      const done = await longRequest(server, "Archiving", "archive", { sessionId });
      if (done !== undefined) {
        showUndoable(`Archived “${cut(subject(session), 60)}”.`, () => unarchive(app, sessionId));
      }
    }),
    unarchiveSession: onSession(app, ({ sessionId }) => unarchive(app, sessionId)),
    showActions: onSession(app, showActions),
    search: () => findByName(tree.filter, filter),
    showArchived: () => filter({ ...tree.filter, archived: true }),
    clearFilter: () => filter(NO_FILTER),
    loadMore: (group?: Group) => group && tree.showMore(group),
    follow: () => following.choose(null),
  };
}

async function unarchive({ server }: App, sessionId: string): Promise<void> {
  if (await longRequest(server, "Unarchiving", "unarchive", { sessionId })) {
    showDone("Session unarchived");
  }
}

/** Show the actions of the status bar item. */
async function showActions(session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const title = dotted(cut(subject(session), 60), contextWords(session));
  const actions = actionsOf(session).map(([label, icon, command]) =>
    action(icon, label, () => runCommand(command, { sessionId })),
  );
  await askToDo(title, actions);
}

async function rename({ server }: App, { sessionId, title }: SessionSummary): Promise<void> {
  const name = await vscode.window.showInputBox({
    title: "Rename Session",
    prompt: "Leave empty to use the first request as the name.",
    value: cut(plain(title ?? ""), MAX_LABEL),
  });
  if (name !== undefined) {
    await server.request("rename", { sessionId, name: name.trim() });
  }
}

/** Pause after a key before the list is read again. */
const TYPED_MS = 150;

/** Filter the list by name while the user types; Escape brings the earlier filter back. */
function findByName(before: Filter, filter: (next: Filter) => void): void {
  const box = vscode.window.createInputBox();
  box.title = "Find Session by Name";
  box.prompt = "Searches names, last messages, folders and IDs. Leave empty to see all.";
  box.value = before.search;
  let timer: NodeJS.Timeout | undefined;
  let isAccepted = false;
  const show = () => filter({ ...before, search: box.value.trim() });
  box.onDidChangeValue(() => {
    clearTimeout(timer);
    timer = setTimeout(show, TYPED_MS);
  });
  box.onDidAccept(() => {
    isAccepted = true;
    box.hide();
  });
  box.onDidHide(() => {
    clearTimeout(timer);
    isAccepted ? show() : filter(before);
    box.dispose();
  });
  box.show();
}
