/** Texts about interpreters and programs. */

import { dotted, plain } from "../../common/model/text.ts";
import type { Attempt } from "../install.ts";

export interface PythonChoice {
  readonly program: string;
  readonly label: string;
  readonly description: string;
}

/** The interpreters that can run the server, without duplicates. */
export function pythonChoices(attempts: readonly Attempt[]): readonly PythonChoice[] {
  const choices = new Map<string, PythonChoice>();
  for (const { candidate, version, executable, reason } of attempts) {
    const program = executable ?? candidate.command.join(" ");
    if (reason === null && !choices.has(program)) {
      const description = dotted(plain(program), candidate.origin);
      choices.set(program, { program, label: plain(`Python ${version}`), description });
    }
  }
  return [...choices.values()];
}

/** How to install Python on a platform, with the command for it. */
export function howToInstallPython(platform: NodeJS.Platform) {
  switch (platform) {
    case "win32":
      return {
        sentence: "Run this in a terminal, or download it from python.org:",
        command: "winget install Python.Python.3.13",
      };
    case "darwin":
      return {
        sentence: "With Homebrew; without it, download Python from python.org:",
        command: "brew install python@3.13",
      };
    default:
      return {
        sentence: "With the packages of your system, on Debian and Ubuntu:",
        command: "sudo apt install python3",
      };
  }
}

/** Explain why Codex cannot be started; `remote` names another machine. */
export function codexMissing(chosen: string, remote: string | undefined): string {
  const where = remote === undefined ? "" : ` on ${plain(remote)}`;
  if (chosen !== "") {
    return `The setting codexCheckpoints.codexPath names ${plain(chosen)}, which is not there${where}.`;
  }
  const settings =
    remote === undefined
      ? "The setting codexCheckpoints.codexPath is not set."
      : "The setting codexCheckpoints.codexPath is not set there: the settings of that machine count, not your user settings.";
  return `Codex was not found on the PATH${where}. ${settings}`;
}
