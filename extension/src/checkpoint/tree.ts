/** The tree of one session's checkpoint. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import { attempt } from "../client/requests.ts";
import type { App, Commands } from "../common/app.ts";
import { openArtifact } from "../common/files.ts";
import { cut, dotted, meter, subject } from "../common/model/text.ts";
import { Tree, treeItem } from "../common/rows.ts";
import { showWhatChanged } from "../page/changes.ts";
import type { Followed, Following } from "../sessions/sessionInView.ts";
import {
  type Action,
  type Checkpoint,
  type CheckpointNode,
  checkpointNodes,
  isSuspect,
  receivedNode,
} from "./model/rows.ts";

const CHECKPOINT_VIEW = "codexCheckpoints.checkpoint";

export class CheckpointTree extends Tree<CheckpointNode> {
  readonly #following: Following;
  #roots: readonly CheckpointNode[] = [];
  /** The row to select as soon as it exists. */
  #wanted: string | null = null;

  constructor(server: Server, following: Following) {
    super(CHECKPOINT_VIEW, server);
    this.#following = following;
    this.subscriptions.push(following.onDidChange((followed) => this.#update(followed)));
  }

  protected itemOf(node: CheckpointNode): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const isLeaf = node.children.length === 0;
    const item = treeItem(node.id, node.row, isLeaf ? None : node.unfolded ? Expanded : Collapsed);
    if (node.action !== null) {
      item.command = commandOf(node.action, node);
    }
    item.contextValue = menuOf(node);
    return item;
  }

  getParent(node: CheckpointNode): CheckpointNode | undefined {
    return this.#roots.find(({ children }) => children.includes(node));
  }

  /** Redraw, and select the row with this id. */
  show(id: string): void {
    this.#wanted = id;
    void this.redraw();
  }

  protected override known(node: CheckpointNode): readonly CheckpointNode[] {
    return node.children;
  }

  protected async rows(_: unknown, isNewest: () => boolean): Promise<CheckpointNode[]> {
    const session = this.#following.current;
    if (session === null) {
      this.showMessage("");
      return [];
    }
    const { sessionId } = session;
    const [shown, { items }, { received }, { items: pins }] = await Promise.all([
      this.server.request("show", { sessionId, turnId: null }),
      this.server.request("notes", { sessionId }),
      this.server.request("session", { sessionId }),
      this.server.request("pins", { sessionId }),
    ]);
    const checkpoint: Checkpoint = JSON.parse(shown.text);
    const nodes = checkpointNodes(checkpoint, shown, items, pins);
    const artifacts = shown.recent.length;
    this.server.log.info(`checkpoint ${sessionId}: seq ${session.seq}, artifacts: ${artifacts}`);
    const all = received === null ? nodes : [...nodes, receivedNode(received, Date.now())];
    if (isNewest()) {
      this.showMessage("");
      this.#roots = all;
    }
    return all;
  }

  /** Select the wanted row. */
  protected override published(): void {
    const found = this.#roots
      .flatMap(({ children }) => children)
      .find(({ id }) => id === this.#wanted);
    if (found !== undefined) {
      this.#wanted = null;
      // The rows may have changed meanwhile.
      this.view.reveal(found, { select: true }).then(undefined, () => {});
    }
  }

  #update({ session, gone, changes }: Followed): void {
    const lost = gone === null ? "" : `${cut(subject(gone), 60)} · deleted`;
    this.view.description =
      session === null
        ? lost
        : dotted(session.live ? "running" : "", meter(session), cut(subject(session), 60));
    if (session === null || changes === null || changes.has(session.sessionId)) {
      this.refresh();
    }
  }
}

function commandOf(action: Action, node: CheckpointNode): vscode.Command {
  const names = {
    open: ["openArtifact", "Open File"],
    copy: ["copyText", "Copy"],
    run: ["showCommand", "Show Command and Output"],
    record: ["showRecord", "Show Record"],
    compare: ["showWhatChanged", "Show What Changed"],
  } as const;
  const [command, title] = names[action.kind];
  return { command: `codexCheckpoints.${command}`, title, arguments: [node] };
}

/** The context value of a row, for the menu conditions in package.json. */
function menuOf(node: CheckpointNode): string {
  if (node.note !== null) {
    const compares = node.action?.kind === "compare" ? " changed" : "";
    return isSuspect(node.note) ? `suspectFact${compares}` : node.note.kind;
  }
  if (node.pin !== null) {
    return node.pin.uri === null ? "pinned" : "pinnedFile";
  }
  const menus = {
    open: "file",
    copy: "copyable",
    run: "copyable command",
    record: "record",
    compare: "changedFile",
  };
  return node.action === null ? "" : menus[node.action.kind];
}

export function checkpointCommands(app: App): Commands {
  const { following, reports } = app;
  const folder = () => following.current?.cwd ?? null;
  // A user's own key binding calls these without a row.
  const onRow = (act: (action: Action) => unknown) => (row?: CheckpointNode) =>
    row?.action ? act(row.action) : undefined;
  return {
    openArtifact: onRow((action) =>
      action.kind === "open" || action.kind === "compare"
        ? openArtifact(folder(), action.uri)
        : undefined,
    ),
    showWhatChanged: onRow((action) => {
      const session = following.current;
      return action.kind === "compare" && session !== null
        ? attempt(() => showWhatChanged(app, session, { ...action, turnId: null }))
        : undefined;
    }),
    showRecord: onRow((action) =>
      action.kind === "record" && following.current !== null
        ? reports.openRecord(following.current.sessionId, action.ref)
        : undefined,
    ),
    showCommand: onRow((action) =>
      action.kind === "run" && following.current !== null
        ? reports.openRecord(following.current.sessionId, `#${action.seq}`)
        : undefined,
    ),
    copyText: onRow(async (action) => {
      const text = "uri" in action ? action.uri : "ref" in action ? action.ref : action.text;
      await vscode.env.clipboard.writeText(text);
      vscode.window.setStatusBarMessage("Copied", 2000);
    }),
  };
}
