/** The context meter at the right edge of each session row, where a long task does not hide it. */

import * as vscode from "vscode";
import type { Badge } from "./model/sessions.ts";

const SCHEME = "codex-checkpoints-badge";

/** The address of a badge says all about it, so the provider remembers nothing. */
export function badgeUri({ text, alert }: Badge): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `/${alert ? "alert" : "calm"}/${text}` });
}

/** Have the editor draw them. */
export function provideBadges(): vscode.Disposable {
  return vscode.window.registerFileDecorationProvider({
    provideFileDecoration(uri) {
      const [, alert, text] = uri.path.split("/");
      if (uri.scheme !== SCHEME || !text) {
        return undefined;
      }
      const tooltip = `context ${text} percent`;
      const colour = alert === "alert" ? "list.warningForeground" : undefined;
      return new vscode.FileDecoration(
        text,
        tooltip,
        colour === undefined ? undefined : new vscode.ThemeColor(colour),
      );
    },
  });
}
