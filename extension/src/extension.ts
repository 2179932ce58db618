/** Wires the parts together; decides nothing. */

import * as vscode from "vscode";
import { provideBadges } from "./badges.ts";
import { ChangeFeed } from "./changes.ts";
import { CheckpointTree } from "./checkpointTree.ts";
import { Server } from "./client.ts";
import { registerCommands } from "./commands.ts";
import { CompactionDesk } from "./compacting.ts";
import { Documents } from "./documents.ts";
import { warnOfDrift } from "./drift.ts";
import { Emptiness } from "./emptiness.ts";
import { Following } from "./following.ts";
import { NoteDesk } from "./notes.ts";
import { firstIndex } from "./progress.ts";
import { SessionDesk } from "./sessionDesk.ts";
import { SessionTree } from "./sessionTree.ts";
import { SECTION } from "./settings.ts";
import { StatusBar } from "./statusBar.ts";
import { tellOfTrouble } from "./trouble.ts";

let running: Server | null = null;

/** Begin: the views are there at once, the server follows. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Codex Checkpoints", { log: true });
  const server = new Server(context.extensionPath, context.globalState, log);
  running = server;
  const emptiness = new Emptiness(server);
  const feed = new ChangeFeed(server);
  const following = new Following(server, feed);
  const tree = new SessionTree(server, feed, emptiness);
  const documents = new Documents(server, feed);
  const checkpoint = new CheckpointTree(server, following);
  const statusBar = new StatusBar(server, following);
  const notes = new NoteDesk(server, following);
  const sessions = new SessionDesk(server);
  const compaction = new CompactionDesk(server, documents);
  const house = { server, feed, tree, following, documents, notes, sessions, compaction };
  const commands = registerCommands(house);
  context.subscriptions.push(log, feed, following, tree, documents, checkpoint, statusBar);
  context.subscriptions.push(
    commands,
    provideBadges(),
    tellOfTrouble(server),
    warnOfDrift(server),
    server.onDidChangeState((state) => emptiness.server(state)),
    server.onDidStart(() => firstIndex(server)),
    // Ages grow by themselves, and a session that ends without a word is no longer running.
    every(30_000, () => {
      following.look(new Set());
      tree.refresh();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.restart()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      // What the log holds is looked up each time.
      const isOfTheLog = event.affectsConfiguration(`${SECTION}.trace`);
      if (event.affectsConfiguration(SECTION) && !isOfTheLog) {
        void server.restart();
      }
    }),
  );
  emptiness.server(server.state);
  // Not awaited: starting takes a moment, and the editor need not wait for it.
  void server.restart();
}

function every(milliseconds: number, callback: () => void): vscode.Disposable {
  const timer = setInterval(callback, milliseconds);
  return new vscode.Disposable(() => clearInterval(timer));
}

/** End the server with the window. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}
