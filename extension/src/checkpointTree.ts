/** The tree of one session's checkpoint. */

import * as vscode from "vscode";
import type { App, Commands } from "./app.ts";
import type { Server } from "./client.ts";
import { openArtifact, showWhatChanged } from "./files.ts";
import type { Changes, Followed, Following } from "./following.ts";
import {
  type Action,
  type Checkpoint,
  type CheckpointNode,
  checkpointNodes,
  isSuspect,
  receivedNode,
} from "./model/checkpoint.ts";
import { Newest } from "./model/status.ts";
import { cut, dotted, harmless, meter, subject } from "./model/text.ts";
import { NotesRequest, PinsRequest, SessionRequest, ShowRequest } from "./protocol.ts";
import { errorText } from "./requests.ts";
import { treeItem } from "./rows.ts";

const CHECKPOINT_VIEW = "codexCheckpoints.checkpoint";

export class CheckpointTree implements vscode.TreeDataProvider<CheckpointNode>, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly #server: Server;
  readonly #following: Following;
  readonly #view: vscode.TreeView<CheckpointNode>;
  readonly #subscriptions: vscode.Disposable[];
  readonly #looks = new Newest();
  #isStale = false;

  constructor(server: Server, following: Following) {
    this.#server = server;
    this.#following = following;
    this.#view = vscode.window.createTreeView(CHECKPOINT_VIEW, { treeDataProvider: this });
    this.#subscriptions = [
      following.onDidChange((followed) => this.#heard(followed)),
      this.#view.onDidChangeVisibility(({ visible }) => {
        if (visible && this.#isStale) {
          this.#refresh();
        }
      }),
    ];
  }

  getTreeItem(node: CheckpointNode): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const isLeaf = node.children.length === 0;
    const item = treeItem(node.id, node.row, isLeaf ? None : node.unfolded ? Expanded : Collapsed);
    if (node.action !== null) {
      item.command = commandOf(node.action, node);
    }
    item.contextValue = menuOf(node);
    return item;
  }

  async getChildren(node?: CheckpointNode): Promise<CheckpointNode[]> {
    if (node !== undefined) {
      return [...node.children];
    }
    const isNewest = this.#looks.begin();
    const session = this.#following.current;
    if (session === null || this.#server.state.kind !== "ready") {
      this.#view.message = "";
      return [];
    }
    this.#isStale = false;
    try {
      const { sessionId } = session;
      const [{ text }, { items }, { received }, { items: pins }] = await Promise.all([
        this.#server.request(ShowRequest, { sessionId, turnId: null }),
        this.#server.request(NotesRequest, { sessionId }),
        this.#server.request(SessionRequest, { sessionId }),
        this.#server.request(PinsRequest, { sessionId }),
      ]);
      const checkpoint: Checkpoint = JSON.parse(text);
      const nodes = checkpointNodes(checkpoint, items, session, Date.now(), pins);
      const artifacts = checkpoint.recentArtifacts.length;
      this.#server.log.info(`checkpoint ${sessionId}: seq ${session.seq}, ${artifacts} artifacts`);
      if (isNewest()) {
        this.#view.message = "";
      }
      return received === null ? nodes : [...nodes, receivedNode(received, Date.now())];
    } catch (error) {
      this.#server.log.warn(`checkpoint: ${error instanceof Error ? error.message : error}`);
      // Of a session that is no longer in view nothing is said above another.
      if (isNewest()) {
        this.#view.message = harmless(errorText(error));
      }
      return [];
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#view, this.#emitter).dispose();
  }

  #heard({ session, changes }: Followed): void {
    this.#view.description =
      session === null
        ? ""
        : dotted(session.live ? "running" : "", meter(session), cut(subject(session), 60));
    if (session === null || concerns(changes, session.sessionId)) {
      this.#view.visible ? this.#refresh() : this.#forget();
    }
  }

  #refresh(): void {
    this.#emitter.fire(undefined);
  }

  #forget(): void {
    this.#isStale = true;
  }
}

/** What a click does; the row itself goes along. */
function commandOf(action: Action, node: CheckpointNode): vscode.Command {
  const names = {
    open: ["openArtifact", "Open File"],
    copy: ["copyText", "Copy"],
    record: ["showRecord", "Show the Record"],
    compare: ["showWhatChanged", "Show What Changed"],
  } as const;
  const [command, title] = names[action.kind];
  return { command: `codexCheckpoints.${command}`, title, arguments: [node] };
}

/** Which menu a row has, for the conditions of package.json. */
function menuOf(node: CheckpointNode): string {
  if (node.note !== null) {
    return isSuspect(node.note) ? "suspectFact" : node.note.kind;
  }
  if (node.pin !== null) {
    return "pinnedFile";
  }
  const menus = { open: "file", copy: "copyable", record: "record", compare: "changedFile" };
  return node.action === null ? "" : menus[node.action.kind];
}

function concerns(changes: Changes, sessionId: string): boolean {
  return changes === null || changes.has(sessionId);
}

/** Make the table of commands about its rows. */
export function checkpointCommands({ following, documents }: App): Commands {
  const folder = () => following.current?.cwd ?? null;
  // By a key of a person's own it may be called without a row.
  const onRow = (act: (action: Action) => unknown) => (row?: CheckpointNode) =>
    row?.action ? act(row.action) : undefined;
  return {
    openArtifact: onRow((action) =>
      action.kind === "open" || action.kind === "compare"
        ? openArtifact(folder(), action.uri)
        : undefined,
    ),
    showWhatChanged: onRow((action) =>
      action.kind === "compare" ? showWhatChanged(folder(), action.uri, action.hash) : undefined,
    ),
    showRecord: onRow((action) =>
      action.kind === "record" && following.current !== null
        ? documents.openRecord(following.current, action.ref)
        : undefined,
    ),
    copyText: onRow(async (action) => {
      const text = "uri" in action ? action.uri : "ref" in action ? action.ref : action.text;
      await vscode.env.clipboard.writeText(text);
      vscode.window.setStatusBarMessage("Copied", 2000);
    }),
  };
}
