/** Commands that navigate from a session to its source and its branches. */

import type { SessionSummary } from "../client/protocol.ts";
import { attempt, codeOf } from "../client/requests.ts";
import { type App, type Commands, onSession, type Target } from "../common/app.ts";
import { confirmLoss, inform, showDone } from "../common/messages.ts";
import { subject } from "../common/model/text.ts";
import { askBranch } from "../common/pickers.ts";
import type { End } from "./model/branches.ts";

export function branchCommands(app: App): Commands {
  return {
    goToSession: async (target?: Target) => {
      const session = target?.kind === undefined ? target?.sessionId : undefined;
      const id = target?.kind === "branch" ? target.branch.sessionId : session;
      await attempt(() => goTo(app, id ?? ""));
    },
    goToSource: onSession(app, (session) => go(app, session, "source")),
    goToBranches: onSession(app, (session) => go(app, session, "branch")),
    deleteBranch: onSession(app, (session) => remove(app, session)),
  };
}

/** Show a session in the Checkpoint view, and select its row if the list has one. */
async function goTo({ server, following, tree }: App, sessionId: string): Promise<void> {
  const { summary: session } = await server.request("session", { sessionId });
  following.choose(session);
  if (!(await tree.reveal(session.sessionId))) {
    void inform(
      session.archived
        ? "This session is archived. The Checkpoint view shows it."
        : "This session is not in the list as it is now. The Checkpoint view shows it.",
    );
  }
}

/** Go to the source or to a branch; ask which branch if there are several. */
async function go(app: App, session: SessionSummary, end: End): Promise<void> {
  const { sessionId } = session;
  const { source, items } = await app.server.request("branches", { sessionId });
  const other = end === "source" ? source : await askBranch(session, items);
  if (other) {
    await goTo(app, other.sessionId);
  } else if (end === "source") {
    await inform("This session was not made from another one.");
  } else if (items.length === 0) {
    await inform("No session was made from this one.");
  }
}

async function remove({ server }: App, session: SessionSummary): Promise<void> {
  const stays = "Its file is deleted for good. The session that it was made from stays as it is.";
  if (!(await confirmLoss("Delete this session?", `${subject(session)}\n\n${stays}`, "Delete"))) {
    return;
  }
  const { sessionId } = session;
  try {
    await server.request("delete", { sessionId, force: false });
  } catch (error) {
    if (codeOf(error) !== "has_own_turns") {
      throw error;
    }
    const own = "You continued this session. Your own turns will be deleted with it, for good.";
    if (!(await confirmLoss("Delete your own turns too?", own, "Delete All"))) {
      return;
    }
    await server.request("delete", { sessionId, force: true });
  }
  showDone("Session deleted");
}
