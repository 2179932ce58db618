/** Compacts a session, and resumes sessions in a terminal. */

import * as vscode from "vscode";
import { type App, type Commands, onSession } from "./app.ts";
import { figures, Hints, notice, percentOf, reportText } from "./model/compaction.ts";
import { refusalText } from "./model/status.ts";
import {
  type Compacted,
  CompactRequest,
  type Resumed,
  ResumeRequest,
  type SessionSummary,
  UncompactRequest,
} from "./protocol.ts";
import { attempt, longRequest } from "./requests.ts";
import type { SessionNode } from "./sessionTree.ts";
import { turnOff } from "./settings.ts";
import { openCodex } from "./terminal.ts";

export function compactionCommands(
  app: App,
  preview: (session: SessionSummary) => Promise<void>,
): Commands {
  return {
    compactSession: onSession(app, preview),
    undoCompaction: (node?: SessionNode) => {
      const compactionId = node?.kind === "window" ? node.window.compactionId : null;
      return compactionId === null ? undefined : attempt(() => undo(app, compactionId));
    },
    resumeSession: onSession(app, (session) => resume(app, session)),
    showLosses: onSession(app, (session) => app.documents.open("losses", session)),
  };
}

/** Open the preview of a compaction. */
async function openPreview({ sessionId }: SessionSummary): Promise<void> {
  await vscode.commands.executeCommand("codexCheckpoints.compactSession", { sessionId });
}

/** Ask where the work goes on, and compact; false if the user does not want to. */
export async function compact(
  app: App,
  session: SessionSummary,
  would: Compacted,
  digestTokens: number | null,
): Promise<boolean> {
  const place = await askPlace(figures(would));
  if (place === undefined) {
    return false;
  }
  const { into, strategy } = place;
  const title = strategy === "codex" ? "Codex writes its summary" : "Compacting";
  const how = { placement: "manual", force: false, digestTokens };
  const asked = { sessionId: session.sessionId, into, strategy, ...how };
  const done = await longRequest(app.server, title, CompactRequest, asked);
  if (done === undefined) {
    return false;
  }
  void attempt(() => showDone(app, session, done));
  return true;
}

async function showDone(app: App, session: SessionSummary, done: Compacted): Promise<void> {
  const [go, report, back] = ["Resume in Terminal", "Open Report", "Undo"];
  const chosen = await vscode.window.showInformationMessage(notice(done), go, report, back);
  if (chosen === go && done.sessionId !== null) {
    await openCodex(done.sessionId, session.cwd);
  } else if (chosen === report) {
    await app.documents.openText("Compaction report", reportText(done));
  } else if (chosen === back && done.compactionId !== null) {
    await undo(app, done.compactionId);
  }
}

async function undo({ server }: App, compactionId: string): Promise<void> {
  const { into } = await server.request(UncompactRequest, { compactionId });
  const sentence =
    into === "new"
      ? "The compaction is taken back: go on in the session that it was made from."
      : "The compaction is taken back: the session has its history again.";
  vscode.window.setStatusBarMessage(sentence, 8000);
}

/** Ask where the work continues, and whether Codex writes the summary. */
async function askPlace(title: string) {
  const label = "With a summary that Codex asks its model for";
  const own = { label, kind: vscode.QuickPickItemKind.Separator };
  const stays = "This session stays as it is; the new one goes on from its checkpoint.";
  const appended = "Appended to this session, while Codex does not have it open.";
  const detail = "Takes a model call, in a fork that is archived afterwards.";
  const [fresh, here] = ["Into a New Session", "In Place"];
  const [byUs, byCodex] = [{ strategy: "checkpoint" }, { strategy: "codex", detail }];
  const items = [
    { label: fresh, detail: stays, into: "new", ...byUs },
    { label: here, detail: appended, into: "in-place", ...byUs },
    own,
    { label: `${fresh}, Summarised by Codex`, into: "new", ...byCodex },
    { label: `${here}, Summarised by Codex`, into: "in-place", ...byCodex },
  ];
  const placeHolder = "Where does the work go on?";
  const options = { title, placeHolder, ignoreFocusOut: true };
  const chosen = await vscode.window.showQuickPick(items, options);
  return chosen !== undefined && "into" in chosen ? chosen : undefined;
}

// --- going on ------------------------------------------------------------------------------------

/** Compact first if the settings say so, then resume in a terminal (JUN-16, JUN-36). */
export async function resume(app: App, session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const looking = "Looking at how full the context is";
  const found = await longRequest(app.server, looking, ResumeRequest, { sessionId });
  if (found === undefined) {
    return;
  }
  const { compacted, notCompacted } = found;
  if (found.live) {
    void vscode.window.showInformationMessage("Codex has this session open already.");
    return;
  }
  if (compacted !== null) {
    void attempt(() => showDone(app, session, compacted));
  } else if (notCompacted !== null) {
    const why = refusalText(notCompacted.code, {});
    void vscode.window.showInformationMessage(`It was not compacted first. ${why}`);
  }
  await (await askHow(session, found))?.run();
}

/** How to resume; ask only if there is a choice. */
async function askHow(session: SessionSummary, found: Resumed) {
  const { offer, continuedBy, cwd } = found;
  const items: (vscode.QuickPickItem & { readonly run: () => Promise<void> })[] = [];
  if (continuedBy !== null) {
    const label = "Resume the Session It Goes On In";
    const detail = "This one was compacted into a new session.";
    items.push({ label, detail, run: () => openCodex(continuedBy, cwd) });
  }
  if (offer !== null) {
    const label = "Compact First…";
    const detail = "Go on from the checkpoint instead of the whole history.";
    items.push({ label, detail, run: () => openPreview(session) });
  }
  const asIs = { label: "Resume as It Is", run: () => openCodex(found.sessionId, cwd) };
  const title =
    offer === null ? "Its work went on elsewhere" : `Its context is ${percentOf(offer)}% full`;
  return items.length === 0 ? asIs : vscode.window.showQuickPick([...items, asIs], { title });
}

// --- one hint --------------------------------------------------------------------------------------

/** Offer once to compact the session in view; for a running session only show that it is due. */
export function offerCompaction(app: App): vscode.Disposable {
  const hints = new Hints(Date.now());
  return app.following.onDidChange(({ session }) => {
    if (session !== null && hints.isDue(session)) {
      void attempt(() => hint(session));
    }
  });
}

async function hint(session: SessionSummary): Promise<void> {
  if (session.offer === null) {
    return;
  }
  const [now, off] = ["Compact…", "Turn Off"];
  const share = percentOf(session.offer);
  const [sentence, actions] = session.live
    ? [
        `The running session's context is ${share}% full. When you have ended it in Codex, it can be compacted without a model.`,
        [off],
      ]
    : [`The session's context is ${share}% full: compact it before you go on?`, [now, off]];
  const chosen = await vscode.window.showInformationMessage(sentence, ...actions);
  if (chosen === now) {
    await openPreview(session);
  } else if (chosen === off) {
    await turnOff("compactionOffer", "off");
  }
}
