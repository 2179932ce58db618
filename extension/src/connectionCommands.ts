/** The commands about how Codex and we are connected. */

import * as vscode from "vscode";
import type { Commands, House } from "./house.ts";

/** Make the table of them. */
export function connectionCommands({ connection, connections }: House): Commands {
  return {
    connect: () => connection.connect(),
    disconnect: () => connection.disconnect(),
    explainTrust: () => connection.explainTrust(),
    explainUpdate: () => connection.explainUpdate(),
    chooseHome: () =>
      vscode.commands.executeCommand("workbench.action.openSettings", "codexCheckpoints.codexHome"),
    refreshConnection: () => connections.refresh(),
  };
}
