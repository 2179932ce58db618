/** The tree of one session's checkpoint. */

import * as vscode from "vscode";
import type { Changes } from "./changes.ts";
import type { Server } from "./client.ts";
import type { Followed, Following } from "./following.ts";
import { type Checkpoint, type CheckpointNode, checkpointNodes } from "./model/checkpoint.ts";
import { cut, dotted, meter, subject } from "./model/text.ts";
import { ShowRequest } from "./protocol.ts";
import { treeItem } from "./treeItem.ts";

const { l10n } = vscode;

export const CHECKPOINT_VIEW = "codexCheckpoints.checkpoint";

export class CheckpointTree implements vscode.TreeDataProvider<CheckpointNode>, vscode.Disposable {
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly #server: Server;
  readonly #following: Following;
  readonly #view: vscode.TreeView<CheckpointNode>;
  readonly #subscriptions: vscode.Disposable[];
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
    if (node.action?.kind === "open") {
      item.contextValue = "file";
      item.command = {
        command: "codexCheckpoints.openArtifact",
        title: l10n.t("Open File"),
        arguments: [node],
      };
    } else if (node.action?.kind === "copy") {
      item.contextValue = "copyable";
      item.command = {
        command: "codexCheckpoints.copyText",
        title: l10n.t("Copy"),
        arguments: [node],
      };
    }
    return item;
  }

  async getChildren(node?: CheckpointNode): Promise<CheckpointNode[]> {
    if (node !== undefined) {
      return [...node.children];
    }
    const session = this.#following.current;
    if (session === null || this.#server.state.kind !== "ready") {
      return [];
    }
    this.#isStale = false;
    try {
      const { sessionId } = session;
      const { text } = await this.#server.request(ShowRequest, { sessionId, turnId: null });
      const checkpoint: Checkpoint = JSON.parse(text);
      const nodes = checkpointNodes(checkpoint, session, Date.now(), l10n.t);
      const artifacts = checkpoint.recentArtifacts.length;
      this.#server.log.info(`checkpoint ${sessionId}: seq ${session.seq}, ${artifacts} artifacts`);
      return nodes;
    } catch (error) {
      this.#server.log.warn(`checkpoint: ${error instanceof Error ? error.message : error}`);
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
        : dotted(
            session.live ? l10n.t("running") : "",
            meter(session, l10n.t),
            cut(subject(session, l10n.t), 60),
          );
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

function concerns(changes: Changes, sessionId: string): boolean {
  return changes === null || changes.has(sessionId);
}
