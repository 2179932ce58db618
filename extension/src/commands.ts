/** The commands: each finds its session and passes it on. */

import * as vscode from "vscode";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import type { Document, Documents } from "./documents.ts";
import { setContext } from "./emptiness.ts";
import { askForFilter, askForSearch } from "./filtering.ts";
import type { Following } from "./following.ts";
import type { CheckpointNode } from "./model/checkpoint.ts";
import { type Filter, isFiltered, NO_FILTER } from "./model/listing.ts";
import { openArtifact } from "./openArtifact.ts";
import type { SessionSummary } from "./protocol.ts";
import type { Group, SessionNode } from "./sessionItem.ts";
import type { SessionTree } from "./sessionTree.ts";

const { l10n } = vscode;

/** What commands work with. */
export interface House {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly tree: SessionTree;
  readonly following: Following;
  readonly documents: Documents;
}

/** Register all of them, under the names of package.json. */
export function registerCommands(house: House): vscode.Disposable {
  const { server, feed, tree, following, documents } = house;

  /** The row a menu was opened on, else the session in view. */
  const sessionOf = (node?: SessionNode): SessionSummary | null =>
    node?.kind === "session" ? node.session : following.current;

  const showing = (document: Document) => async (node?: SessionNode) => {
    const session = sessionOf(node);
    await (session === null ? noSession() : documents.open(document, session));
  };
  const copying = (text: (sessionId: string) => string) => async (node?: SessionNode) => {
    const session = sessionOf(node);
    // What is pasted into a shell must be nothing but an id.
    const isPlain = session !== null && /^[\w-]+$/.test(session.sessionId);
    await (isPlain ? vscode.env.clipboard.writeText(text(session.sessionId)) : noSession());
  };
  const filter = (next: Filter | undefined) => {
    if (next !== undefined) {
      tree.filter = next;
      setContext("filtered", isFiltered(next));
    }
  };

  const commands: Record<string, (...args: never[]) => unknown> = {
    showView: showing("view"),
    showJson: showing("json"),
    doctor: () => documents.open("doctor", null),
    copySessionId: copying((id) => id),
    copyResumeCommand: copying((id) => `codex resume ${id}`),
    refresh: () => feed.everything(),
    restart: () => server.restart(),
    showLog: () => server.log.show(),
    search: async () => filter(await askForSearch(tree.filter)),
    filter: async () => filter(await askForFilter(tree.filter)),
    clearFilter: () => filter(NO_FILTER),
    loadMore: (group: Group) => tree.showMore(group),
    showOthers: () => tree.showOthers(),
    follow: () => following.choose(null),
    openArtifact: (node: CheckpointNode) =>
      node.action?.kind === "open"
        ? openArtifact(following.current?.cwd ?? null, node.action.uri)
        : undefined,
    copyText: async (node: CheckpointNode) => {
      if (node.action !== null) {
        const { action } = node;
        await vscode.env.clipboard.writeText(action.kind === "copy" ? action.text : action.uri);
        vscode.window.setStatusBarMessage(l10n.t("Copied"), 2000);
      }
    },
    openSettings: () => openSettings("@ext:codex-checkpoints.codex-checkpoints"),
    choosePython: () => openSettings("codexCheckpoints.python"),
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, run]) =>
      vscode.commands.registerCommand(`codexCheckpoints.${name}`, run),
    ),
    tree.view.onDidChangeSelection(({ selection }) => {
      const [node] = selection;
      if (node?.kind === "session") {
        following.choose(node.session);
      }
    }),
  );
}

function openSettings(query: string): Thenable<unknown> {
  return vscode.commands.executeCommand("workbench.action.openSettings", query);
}

async function noSession(): Promise<void> {
  await vscode.window.showInformationMessage(l10n.t("Choose a session in the Codex view first."));
}
