/** Tells a person once why the server did not start, with a way out. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { serverCommand } from "./settings.ts";

/** One sentence and its buttons for each failure to start; a server that was killed shows elsewhere. */
export function tellOfTrouble(server: Server): vscode.Disposable {
  return server.onDidChangeState(async (state) => {
    if (state.kind !== "noPython" && state.kind !== "failed") {
      return;
    }
    const settings = { title: "Open Settings", command: "codexCheckpoints.openSettings" };
    const again = { title: "Start Again", command: "codexCheckpoints.restart" };
    const choose = {
      title: "Choose Interpreter",
      command: "codexCheckpoints.choosePython",
    };
    const named = serverCommand() === null ? again : settings;
    const wayOut = state.kind === "noPython" ? choose : named;
    const log = { title: "Show Log", command: "codexCheckpoints.showLog" };
    const chosen = await vscode.window.showErrorMessage(state.reason, wayOut, log);
    if (chosen !== undefined) {
      await vscode.commands.executeCommand(chosen.command);
    }
  });
}
