/** Registers the commands: a table a subject, and here those about the server and the settings. */

import * as vscode from "vscode";
import { checkpointCommands } from "./checkpointCommands.ts";
import { connectionCommands } from "./connectionCommands.ts";
import type { Commands, House } from "./house.ts";
import { markerCommands } from "./markerCommands.ts";
import { packCommands } from "./packCommands.ts";
import { restoreCommands } from "./restoreCommands.ts";
import { sessionCommands } from "./sessionCommands.ts";

/** Register all of them, under the names of package.json. */
export function registerCommands(house: House): vscode.Disposable {
  const all: Commands = {
    ...serverCommands(house),
    ...sessionCommands(house),
    ...checkpointCommands(house),
    ...markerCommands(house),
    ...restoreCommands(house),
    ...packCommands(house),
    ...connectionCommands(house),
  };
  return vscode.Disposable.from(
    ...Object.entries(all).map(([name, run]) =>
      vscode.commands.registerCommand(`codexCheckpoints.${name}`, run),
    ),
    house.tree.view.onDidChangeSelection(({ selection: [node] }) => {
      if (node?.kind === "session") {
        house.following.choose(node.session);
      }
    }),
  );
}

function serverCommands({ server, feed, documents }: House): Commands {
  return {
    doctor: () => documents.open("doctor", null),
    refresh: () => feed.everything(),
    restart: () => server.restart(),
    showLog: () => server.log.show(),
    openSettings: () => openSettings("@ext:codex-checkpoints.codex-checkpoints"),
    choosePython: () => openSettings("codexCheckpoints.python"),
  };
}

function openSettings(query: string): Thenable<unknown> {
  return vscode.commands.executeCommand("workbench.action.openSettings", query);
}
