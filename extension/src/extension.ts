/** Wires the parts together; decides nothing. */

import * as vscode from "vscode";
import { provideBadges } from "./badges.ts";
import { BranchDesk } from "./branching.ts";
import { ChangeFeed } from "./changes.ts";
import { CheckpointTree } from "./checkpointTree.ts";
import { Server } from "./client.ts";
import { registerCommands } from "./commands.ts";
import { CompactionDesk } from "./compacting.ts";
import { ConnectionDesk } from "./connecting.ts";
import { ConnectionTree } from "./connectionTree.ts";
import { Documents } from "./documents.ts";
import { warnOfDrift } from "./drift.ts";
import { Emptiness } from "./emptiness.ts";
import { Following } from "./following.ts";
import type { House } from "./house.ts";
import { MarkerDesk } from "./marking.ts";
import { NoteDesk } from "./notes.ts";
import { offerCompaction } from "./offers.ts";
import { PinDesk } from "./pinning.ts";
import { PackDesk } from "./portable.ts";
import { firstIndex } from "./progress.ts";
import { RestoreDesk } from "./restoring.ts";
import { ResumeDesk } from "./resuming.ts";
import { SessionDesk } from "./sessionDesk.ts";
import { SessionTree } from "./sessionTree.ts";
import { SECTION } from "./settings.ts";
import { States } from "./states.ts";
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
  const resuming = new ResumeDesk(server, compaction);
  const connections = new ConnectionTree(server);
  const connection = new ConnectionDesk(server, documents, connections);
  const states = new States(server, feed);
  const neighbours = { server, feed, following, resuming };
  const restores = new RestoreDesk(neighbours, context.extensionUri);
  const house = {
    server,
    feed,
    tree,
    following,
    documents,
    notes,
    sessions,
    compaction,
    resuming,
    connection,
    connections,
    markers: new MarkerDesk(server, states),
    branches: new BranchDesk(server, tree, following, documents, states),
    pins: new PinDesk(server, following),
    restores,
    packs: new PackDesk(server, documents),
  };
  context.subscriptions.push(
    connections,
    feed,
    following,
    tree,
    documents,
    states,
    restores,
    checkpoint,
    statusBar,
    ...attached(house, emptiness),
  );
  emptiness.server(server.state);
  // Not awaited: starting takes a moment, and the editor need not wait for it.
  void server.restart();
}

/** What reaches the parts from outside: commands, the server, the clock, settings. */
function attached(house: House, emptiness: Emptiness): vscode.Disposable[] {
  const { server, following, tree, compaction, connection } = house;
  return [
    registerCommands(house),
    provideBadges(),
    tellOfTrouble(server),
    warnOfDrift(server),
    offerCompaction(following, compaction),
    server.onDidChangeState((state) => emptiness.server(state)),
    server.onDidStart(async () => {
      await firstIndex(server);
      await connection.tellWhenLost();
    }),
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
  ];
}

function every(milliseconds: number, callback: () => void): vscode.Disposable {
  const timer = setInterval(callback, milliseconds);
  return new vscode.Disposable(() => clearInterval(timer));
}

/** End the server with the window. */
export async function deactivate(): Promise<void> {
  await running?.stop();
  // Last, and by nobody else before: the end of the process is told there, and who writes into a
  // log that is closed fails.
  running?.log.dispose();
}
