/** The commands about portable packs. */

import * as vscode from "vscode";
import type { Commands, House } from "./commands.ts";
import type { SessionNode } from "./sessionItem.ts";

const { l10n } = vscode;

/** Make the table of them. */
export function packCommands({ packs, following }: House): Commands {
  return {
    exportSession: async (node?: SessionNode) => {
      const session = node?.kind === "session" ? node.session : following.current;
      if (session === null) {
        const sentence = l10n.t("Choose a session in the Codex view first.");
        await vscode.window.showInformationMessage(sentence);
        return;
      }
      await packs.export(session);
    },
    importSession: () => packs.import(),
  };
}
