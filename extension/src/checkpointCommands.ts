/** The commands about the rows of a checkpoint: its files, its records, its notes. */

import * as vscode from "vscode";
import type { Commands, House } from "./house.ts";
import type { Action, CheckpointNode } from "./model/node.ts";
import { openArtifact } from "./openArtifact.ts";
import { showWhatChanged } from "./whatChanged.ts";

/** Make the table of them. */
export function checkpointCommands({ following, documents, notes }: House): Commands {
  const folder = () => following.current?.cwd ?? null;

  return {
    openArtifact: onRow(({ action }) =>
      action?.kind === "open" || action?.kind === "compare"
        ? openArtifact(folder(), action.uri)
        : undefined,
    ),
    showWhatChanged: onRow(({ action }) =>
      action?.kind === "compare" ? showWhatChanged(folder(), action.uri, action.hash) : undefined,
    ),
    showRecord: onRow(({ action }) =>
      action?.kind === "record" && following.current !== null
        ? documents.openRecord(following.current, action.ref)
        : undefined,
    ),
    copyText: onRow(async ({ action }) => {
      if (action !== null) {
        await vscode.env.clipboard.writeText(textOf(action));
        vscode.window.setStatusBarMessage("Copied", 2000);
      }
    }),
    addNote: () => notes.add(),
    addFactAboutFile: (file?: vscode.Uri) => notes.addAboutFile(file),
    verifyNote: onRow(({ note }) => notes.verify(note)),
    revokeNote: onRow(({ note }) => notes.revoke(note)),
  };
}

/** Make a command about a row; by a key of a person's own it may be called without one. */
function onRow(act: (row: CheckpointNode) => unknown) {
  return (row?: CheckpointNode) => (row === undefined ? undefined : act(row));
}

function textOf(action: Action): string {
  switch (action.kind) {
    case "copy":
      return action.text;
    case "record":
      return action.ref;
    case "open":
    case "compare":
      return action.uri;
    default:
      return action satisfies never;
  }
}
