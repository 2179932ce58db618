/** The way between a session, its source and its branches: gone to, compared, drawn, deleted. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import type { Documents } from "./documents.ts";
import type { Following } from "./following.ts";
import { type End, lineageChoices, lineageText } from "./model/branches.ts";
import { placeNow } from "./model/comparing.ts";
import { subject } from "./model/text.ts";
import { askBranch, titleFor } from "./picking.ts";
import {
  type Branches,
  BranchesRequest,
  DeleteRequest,
  LineageRequest,
  SessionRequest,
  type SessionSummary,
} from "./protocol.ts";
import { codeOf } from "./refusals.ts";
import type { SessionTree } from "./sessionTree.ts";
import type { States } from "./states.ts";
import { tellDone, telling } from "./telling.ts";

export class BranchDesk {
  readonly #server: Server;
  readonly #tree: SessionTree;
  readonly #following: Following;
  readonly #documents: Documents;
  readonly #states: States;

  constructor(
    server: Server,
    tree: SessionTree,
    following: Following,
    documents: Documents,
    states: States,
  ) {
    this.#server = server;
    this.#tree = tree;
    this.#following = following;
    this.#documents = documents;
    this.#states = states;
  }

  /** Show a session: its row where it is listed, its checkpoint in any case. */
  async goTo(sessionId: string): Promise<void> {
    let session: SessionSummary;
    try {
      session = (await this.#server.request(SessionRequest, { sessionId })).summary;
    } catch (error) {
      if (codeOf(error) !== "unknown_session") {
        throw error;
      }
      await vscode.window.showInformationMessage("This session is no longer here.");
      return;
    }
    this.#following.choose(session);
    if (!(await this.#tree.reveal(session.sessionId))) {
      const sentence = session.archived
        ? "This session is archived. The Checkpoint view shows it."
        : "This session is not in the list as it is now. The Checkpoint view shows it.";
      void vscode.window.showInformationMessage(sentence);
    }
  }

  /** Go to where a session came from, or to what came of it; of several a person chooses. */
  go(session: SessionSummary, end: End): Promise<void> {
    return telling(async () => {
      const { source, items } = await this.#around(session);
      if (end === "source" && source === null) {
        await vscode.window.showInformationMessage("This session began by itself.");
        return;
      }
      if (end === "branch" && items.length === 0) {
        await vscode.window.showInformationMessage("This session has no branch.");
        return;
      }
      const other = end === "source" ? source : await askBranch(session, items);
      if (other) {
        await this.goTo(other.sessionId);
      }
    });
  }

  /** Show source and branch side by side, each as it is now. */
  compareWithSource(session: SessionSummary): Promise<void> {
    return telling(async () => {
      const { source } = await this.#around(session);
      if (source === null || !source.available) {
        const sentence =
          source === null
            ? "This session began by itself."
            : "The source of this session is no longer here.";
        await vscode.window.showInformationMessage(sentence);
        return;
      }
      const left = placeNow(source.sessionId, "source");
      const right = placeNow(session.sessionId, "branch");
      await this.#states.compare(session, left, right);
    });
  }

  /** Show the tree that a session stands in; a session that is chosen is gone to. */
  lineage(session: SessionSummary): Promise<void> {
    return telling(async () => {
      const { sessionId } = session;
      const lineage = await vscode.window.withProgress(
        { location: { viewId: "codexCheckpoints.sessions" } },
        () => this.#server.request(LineageRequest, { sessionId }),
      );
      const choices = lineageChoices(lineage).map((choice) => ({ ...choice }));
      const asText = {
        label: "Open as Text",
        detail: "With every id, window and cut.",
        iconPath: new vscode.ThemeIcon("list-tree"),
        alwaysShow: true,
      };
      const title = titleFor("Lineage", session);
      const chosen = await vscode.window.showQuickPick<vscode.QuickPickItem>([...choices, asText], {
        title,
        placeHolder: "Go to a session of this tree",
        matchOnDetail: true,
      });
      const node = choices.find((choice) => choice === chosen);
      if (chosen === asText) {
        await this.#documents.openText("Lineage", lineageText(lineage));
      } else if (node !== undefined) {
        await this.#goToNode(node);
      }
    });
  }

  /** Delete a session that was made here, once the person is sure. */
  delete(session: SessionSummary): Promise<void> {
    const words = (error: unknown) =>
      codeOf(error) === "conflict"
        ? "Not deleted: only a session that was made here, and of which nothing came, can go."
        : codeOf(error) === "session_live"
          ? "Not deleted: another program has this session open."
          : null;
    return telling(async () => {
      const take = "Delete";
      const stays =
        "Its session file is removed for good. What it was made of stays as it is, and so does the record of how it was made.";
      const sure = await vscode.window.showWarningMessage(
        "Delete this session?",
        { modal: true, detail: `${subject(session)}\n\n${stays}` },
        take,
      );
      if (sure === take) {
        await this.#server.request(DeleteRequest, { sessionId: session.sessionId });
        tellDone("The session is deleted");
      }
    }, words);
  }

  async #goToNode({ id, opens }: { readonly id: string; readonly opens: boolean }): Promise<void> {
    if (opens) {
      await this.goTo(id);
    } else {
      const sentence = "There is no session to show for this entry.";
      await vscode.window.showInformationMessage(sentence);
    }
  }

  #around({ sessionId }: SessionSummary): Promise<Branches> {
    return this.#server.request(BranchesRequest, { sessionId });
  }
}
