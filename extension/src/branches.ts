/** The way between a session, its source and its branches: gone to, compared, drawn, deleted. */

import * as vscode from "vscode";
import { type App, type Commands, onSession, type Target } from "./app.ts";
import { type End, lineageChoices, lineageText } from "./model/branches.ts";
import { placeNow } from "./model/markers.ts";
import { subject } from "./model/text.ts";
import { askBranch, titleFor } from "./picking.ts";
import {
  BranchesRequest,
  DeleteRequest,
  LineageRequest,
  SessionRequest,
  type SessionSummary,
} from "./protocol.ts";
import { attempt, codeOf, showDone } from "./requests.ts";

export function branchCommands(app: App): Commands {
  return {
    goToSession: async (target?: Target) => {
      const session = target?.kind === undefined ? target?.sessionId : undefined;
      const id = target?.kind === "branch" ? target.branch.sessionId : session;
      await attempt(() => goTo(app, id ?? ""));
    },
    goToSource: onSession(app, (session) => go(app, session, "source")),
    goToBranches: onSession(app, (session) => go(app, session, "branch")),
    compareWithSource: onSession(app, (session) => compareWithSource(app, session)),
    showLineage: onSession(app, (session) => showLineage(app, session)),
    deleteBranch: (target?: Target) =>
      onSession(app, (session) => attempt(() => remove(app, session), whyNotDeleted))(target),
  };
}

async function inform(sentence: string): Promise<void> {
  await vscode.window.showInformationMessage(sentence);
}

/** Show a session: its row where it is listed, its checkpoint in any case. */
async function goTo({ server, following, tree }: App, sessionId: string): Promise<void> {
  let session: SessionSummary;
  try {
    session = (await server.request(SessionRequest, { sessionId })).summary;
  } catch (error) {
    if (codeOf(error) !== "unknown_session") {
      throw error;
    }
    await inform("This session is no longer here.");
    return;
  }
  following.choose(session);
  if (!(await tree.reveal(session.sessionId))) {
    void inform(
      session.archived
        ? "This session is archived. The Checkpoint view shows it."
        : "This session is not in the list as it is now. The Checkpoint view shows it.",
    );
  }
}

/** Go to where a session came from, or to what came of it; of several a person chooses. */
async function go(app: App, session: SessionSummary, end: End): Promise<void> {
  const { sessionId } = session;
  const { source, items } = await app.server.request(BranchesRequest, { sessionId });
  if (end === "source" && source === null) {
    await inform("This session began by itself.");
    return;
  }
  if (end === "branch" && items.length === 0) {
    await inform("This session has no branch.");
    return;
  }
  const other = end === "source" ? source : await askBranch(session, items);
  if (other) {
    await goTo(app, other.sessionId);
  }
}

/** Show source and branch side by side, each as it is now. */
async function compareWithSource(app: App, session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const { source } = await app.server.request(BranchesRequest, { sessionId });
  if (source === null) {
    await inform("This session began by itself.");
  } else if (!source.available) {
    await inform("The source of this session is no longer here.");
  } else {
    const left = placeNow(source.sessionId, "source");
    await app.documents.compareStates(session, left, placeNow(sessionId, "branch"));
  }
}

/** Show the tree that a session stands in; a session that is chosen is gone to. */
async function showLineage(app: App, session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const location = { viewId: "codexCheckpoints.sessions" };
  const lineage = await vscode.window.withProgress({ location }, () =>
    app.server.request(LineageRequest, { sessionId }),
  );
  const choices = lineageChoices(lineage);
  const asText = {
    label: "Open as Text",
    detail: "With every id, window and cut.",
    iconPath: new vscode.ThemeIcon("list-tree"),
    alwaysShow: true,
  };
  const chosen = await vscode.window.showQuickPick<vscode.QuickPickItem>([...choices, asText], {
    title: titleFor("Lineage", session),
    placeHolder: "Go to a session of this tree",
    matchOnDetail: true,
  });
  const node = choices.find((choice) => choice === chosen);
  if (chosen === asText) {
    await app.documents.openText("Lineage", lineageText(lineage));
  } else if (node !== undefined) {
    await (node.opens ? goTo(app, node.id) : inform("There is no session to show for this entry."));
  }
}

/** Delete a session that was made here, once the person is sure. */
async function remove({ server }: App, session: SessionSummary): Promise<void> {
  const stays =
    "Its session file is removed for good. What it was made of stays as it is, and so does the record of how it was made.";
  const sure = await vscode.window.showWarningMessage(
    "Delete this session?",
    { modal: true, detail: `${subject(session)}\n\n${stays}` },
    "Delete",
  );
  if (sure === "Delete") {
    await server.request(DeleteRequest, { sessionId: session.sessionId });
    showDone("The session is deleted");
  }
}

function whyNotDeleted(error: unknown): string | null {
  switch (codeOf(error)) {
    case "conflict":
      return "Not deleted: only a session that was made here, and of which nothing came, can go.";
    case "session_live":
      return "Not deleted: another program has this session open.";
    default:
      return null;
  }
}
