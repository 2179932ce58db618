/** The commands: each finds its session and passes it on. */

import * as vscode from "vscode";
import type { BranchDesk } from "./branching.ts";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import type { CompactionDesk } from "./compacting.ts";
import type { ConnectionDesk } from "./connecting.ts";
import { connectionCommands } from "./connectionCommands.ts";
import type { ConnectionTree } from "./connectionTree.ts";
import type { Document, Documents } from "./documents.ts";
import { setContext } from "./emptiness.ts";
import { askForFilter, askForSearch } from "./filtering.ts";
import type { Following } from "./following.ts";
import { markerCommands } from "./markerCommands.ts";
import type { MarkerDesk } from "./marking.ts";
import { type Filter, isFiltered, NO_FILTER } from "./model/listing.ts";
import type { Action, CheckpointNode } from "./model/node.ts";
import { isPlainId } from "./model/sessions.ts";
import type { NoteDesk } from "./notes.ts";
import { openArtifact } from "./openArtifact.ts";
import { packCommands } from "./packCommands.ts";
import type { PinDesk } from "./pinning.ts";
import type { PackDesk } from "./portable.ts";
import type { SessionSummary } from "./protocol.ts";
import { restoreCommands } from "./restoreCommands.ts";
import type { RestoreDesk } from "./restoring.ts";
import type { ResumeDesk } from "./resuming.ts";
import type { SessionDesk } from "./sessionDesk.ts";
import type { Group, SessionNode } from "./sessionItem.ts";
import type { SessionTree } from "./sessionTree.ts";
import { showWhatChanged } from "./whatChanged.ts";

const { l10n } = vscode;

/** What commands work with. */
export interface House {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly tree: SessionTree;
  readonly following: Following;
  readonly documents: Documents;
  readonly notes: NoteDesk;
  readonly sessions: SessionDesk;
  readonly compaction: CompactionDesk;
  readonly resuming: ResumeDesk;
  readonly connection: ConnectionDesk;
  readonly connections: ConnectionTree;
  readonly markers: MarkerDesk;
  readonly branches: BranchDesk;
  readonly pins: PinDesk;
  readonly restores: RestoreDesk;
  readonly packs: PackDesk;
}

/** Commands by their names in package.json, without the prefix. */
export type Commands = Record<string, (...args: never[]) => unknown>;

/** Register all of them, under the names of package.json. */
export function registerCommands(house: House): vscode.Disposable {
  const { server, feed, tree, following, documents, notes, sessions, compaction } = house;

  /** The row a menu was opened on, else the session in view. */
  const sessionOf = (node?: SessionNode): SessionSummary | null =>
    node?.kind === "session" ? node.session : following.current;

  const onSession = (act: (session: SessionSummary) => Promise<void>) => (node?: SessionNode) => {
    const session = sessionOf(node);
    return session === null ? noSession() : act(session);
  };
  const showing = (document: Document) => onSession((session) => documents.open(document, session));
  const copying = (text: (sessionId: string) => string) => async (node?: SessionNode) => {
    const session = sessionOf(node);
    // What is pasted into a shell must be nothing but an id.
    const isPlain = session !== null && isPlainId(session.sessionId);
    await (isPlain ? vscode.env.clipboard.writeText(text(session.sessionId)) : noSession());
  };
  const filter = (next: Filter | undefined) => {
    if (next !== undefined) {
      tree.filter = next;
      setContext("filtered", isFiltered(next));
    }
  };

  const commands: Commands = {
    showView: showing("view"),
    showJson: showing("json"),
    doctor: () => documents.open("doctor", null),
    copySessionId: copying((id) => id),
    copyResumeCommand: copying((id) => `codex resume ${id}`),
    compactSession: onSession((session) => compaction.compact(session)),
    undoCompaction: (node?: SessionNode) =>
      node?.kind === "window" && node.window.compactionId !== null
        ? compaction.undo(node.window.compactionId)
        : undefined,
    resumeSession: onSession((session) => house.resuming.resume(session)),
    showLosses: (node?: SessionNode) => {
      const session = node?.kind === "window" ? node.session : sessionOf(node);
      return session === null ? noSession() : documents.open("losses", session);
    },
    renameSession: onSession((session) => sessions.rename(session)),
    archiveSession: onSession((session) => sessions.archive(session)),
    unarchiveSession: onSession((session) => sessions.unarchive(session)),
    refresh: () => feed.everything(),
    restart: () => server.restart(),
    showLog: () => server.log.show(),
    search: async () => filter(await askForSearch(tree.filter)),
    filter: async () => filter(await askForFilter(tree.filter)),
    clearFilter: () => filter(NO_FILTER),
    loadMore: (group: Group) => tree.showMore(group),
    showOthers: () => tree.showOthers(),
    follow: () => following.choose(null),
    openArtifact: ({ action }: CheckpointNode) =>
      action?.kind === "open" || action?.kind === "compare"
        ? openArtifact(following.current?.cwd ?? null, action.uri)
        : undefined,
    showWhatChanged: ({ action }: CheckpointNode) =>
      action?.kind === "compare"
        ? showWhatChanged(following.current?.cwd ?? null, action.uri, action.hash)
        : undefined,
    showRecord: ({ action }: CheckpointNode) =>
      action?.kind === "record" && following.current !== null
        ? documents.openRecord(following.current, action.ref)
        : undefined,
    copyText: async ({ action }: CheckpointNode) => {
      if (action !== null) {
        await vscode.env.clipboard.writeText(textOf(action));
        vscode.window.setStatusBarMessage(l10n.t("Copied"), 2000);
      }
    },
    addNote: () => notes.add(),
    addFactAboutFile: (file?: vscode.Uri) => notes.addAboutFile(file),
    verifyNote: ({ note }: CheckpointNode) => notes.verify(note),
    revokeNote: ({ note }: CheckpointNode) => notes.revoke(note),
    openSettings: () => openSettings("@ext:codex-checkpoints.codex-checkpoints"),
    choosePython: () => openSettings("codexCheckpoints.python"),
  };
  return vscode.Disposable.from(
    ...Object.entries({
      ...commands,
      ...markerCommands(house),
      ...restoreCommands(house),
      ...packCommands(house),
      ...connectionCommands(house),
    }).map(([name, run]) => vscode.commands.registerCommand(`codexCheckpoints.${name}`, run)),
    tree.view.onDidChangeSelection(({ selection }) => {
      const [node] = selection;
      if (node?.kind === "session") {
        following.choose(node.session);
      }
    }),
  );
}

function textOf(action: Action): string {
  switch (action.kind) {
    case "copy":
      return action.text;
    case "record":
      return action.ref;
    default:
      return action.uri;
  }
}

function openSettings(query: string): Thenable<unknown> {
  return vscode.commands.executeCommand("workbench.action.openSettings", query);
}

async function noSession(): Promise<void> {
  await vscode.window.showInformationMessage(l10n.t("Choose a session in the Codex view first."));
}
