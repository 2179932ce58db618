/** Asks for a program or a folder, and saves it in the settings. */

import * as vscode from "vscode";
import { type Action, action, askToDo, confirm } from "../common/messages.ts";
import { interpreters, type Seeker } from "./launch.ts";
import { howToInstallPython, pythonChoices } from "./model/interpreters.ts";
import { setForAll } from "./settings.ts";

/** Offer the interpreters that can run the server, to browse for another, and how to get one. */
export async function choosePython(seeker: Seeker): Promise<void> {
  const looking = { location: vscode.ProgressLocation.Window, title: "Looking for Python" };
  const found = await vscode.window.withProgress(looking, () => interpreters(seeker));
  const choices = pythonChoices(found).map(
    ({ program, ...looks }): Action => ({ ...looks, run: () => setForAll("python", program) }),
  );
  await askToDo(
    "Choose Python Interpreter",
    [
      ...choices,
      action("folder-opened", "Browse…", () => browseForPython()),
      action("info", "How to Install Python", () => explainPython()),
    ],
    choices.length === 0 ? "No Python 3.11 to 3.14 was found" : "Runs the server",
  );
}

async function browseForPython(): Promise<void> {
  const title = "Choose a Python from 3.11 to 3.14";
  const [program] = (await vscode.window.showOpenDialog({ title })) ?? [];
  if (program !== undefined) {
    await setForAll("python", program.fsPath);
  }
}

async function explainPython(): Promise<void> {
  const { sentence, command } = howToInstallPython(process.platform);
  const detail = `${sentence}\n\n${command}\n\nThen choose “Try Again” in the Sessions view.`;
  if (await confirm("Install Python", detail, "Copy Command")) {
    await vscode.env.clipboard.writeText(command);
  }
}

/** Ask for another state folder, for example if the current one is not writable. */
export async function chooseStateFolder(): Promise<void> {
  const title = "Choose a Folder for Checkpoints, Notes and Markers";
  const [folder] =
    (await vscode.window.showOpenDialog({
      ...{ title, openLabel: "Use This Folder" },
      ...{ canSelectFiles: false, canSelectFolders: true },
    })) ?? [];
  if (folder !== undefined) {
    await setForAll("stateDir", folder.fsPath);
    vscode.window.setStatusBarMessage("Checkpoints are kept there now", 4000);
  }
}

/** Ask for the Codex program to start in terminals. */
export async function chooseCodex(): Promise<void> {
  const [program] =
    (await vscode.window.showOpenDialog({ title: "Choose the Codex Program" })) ?? [];
  if (program !== undefined) {
    await setForAll("codexPath", program.fsPath);
    vscode.window.setStatusBarMessage("Codex is started from there now", 4000);
  }
}
