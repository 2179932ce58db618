/** Compacts a session, and resumes sessions in a terminal. */

import * as vscode from "vscode";
import { type App, type Commands, onSession, showNew } from "./app.ts";
import { figures, fullWords, Hints, notice, reportText } from "./model/compaction.ts";
import { refusalText } from "./model/refusals.ts";
import { cut, subject } from "./model/text.ts";
import {
  type Compacted,
  CompactRequest,
  type Resumed,
  ResumeRequest,
  type SessionSummary,
  UncompactRequest,
  WindowsRequest,
} from "./protocol.ts";
import { attempt, confirm, longRequest } from "./requests.ts";
import type { SessionNode } from "./sessionTree.ts";
import { setForAll } from "./settings.ts";
import { openCodex } from "./terminal.ts";

export function compactionCommands(
  app: App,
  preview: (session: SessionSummary) => Promise<void>,
): Commands {
  return {
    compactSession: onSession(app, preview),
    undoCompaction: (node?: SessionNode) =>
      node?.kind === "window" && node.window.compactionId !== null
        ? undo(app, node.window.compactionId)
        : onSession(app, (session) => undoNewest(app, session))(),
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
  force: boolean,
): Promise<boolean> {
  const name = `“${cut(subject(session), 60)}”`;
  const place = await askPlace(`Compact ${name} (${figures(would)})`);
  if (place === undefined) {
    return false;
  }
  const { into, strategy } = place;
  const question = `Add the compaction to the file of ${name}?`;
  const keeps =
    "Codex then goes on from the summary. The history stays in the file, and Undo brings it back.";
  if (into === "in-place" && !(await confirm(question, keeps, "Compact in Place"))) {
    return false;
  }
  const title = strategy === "codex" ? `Codex summarises ${name}` : `Compacting ${name}`;
  const how = { placement: "manual", force, digestTokens };
  const asked = { sessionId: session.sessionId, into, strategy, ...how };
  const done = await longRequest(app.server, title, CompactRequest, asked);
  if (done === undefined) {
    return false;
  }
  void attempt(() => showDone(app, session, done));
  return true;
}

async function showDone(app: App, session: SessionSummary, done: Compacted): Promise<void> {
  if (done.into === "new" && done.sessionId !== null) {
    void attempt(() => showNew(app, done.sessionId ?? ""));
  }
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

function undo({ server }: App, compactionId: string): Promise<void> {
  return attempt(async () => {
    const { into } = await server.request(UncompactRequest, { compactionId });
    const sentence =
      into === "new"
        ? "Compaction undone. Go on in the original session."
        : "Compaction undone. Codex sees the whole history again.";
    vscode.window.setStatusBarMessage(sentence, 8000);
  });
}

async function undoNewest(app: App, { sessionId }: SessionSummary): Promise<void> {
  const { items } = await app.server.request(WindowsRequest, { sessionId });
  const newest = items.findLast(({ compactionId }) => compactionId !== null);
  if (newest?.compactionId) {
    await undo(app, newest.compactionId);
  } else {
    await vscode.window.showInformationMessage("There is no compaction to undo in this session.");
  }
}

/** Ask where the work continues, and whether Codex writes the summary. */
async function askPlace(title: string) {
  const label = "With a summary by Codex’s model";
  const own = { label, kind: vscode.QuickPickItemKind.Separator };
  const stays = "This session stays as it is. The new one starts from its checkpoint.";
  const appended = "Adds to this session’s file. Close the session in Codex first.";
  const detail = "Uses one model call, in a temporary fork.";
  const [fresh, here] = ["Into a New Session", "In Place"];
  const [byUs, byCodex] = [{ strategy: "checkpoint" }, { strategy: "codex", detail }];
  const items = [
    { label: fresh, detail: stays, into: "new", ...byUs },
    { label: here, detail: appended, into: "in-place", ...byUs },
    own,
    { label: `${fresh}, Summarised by Codex`, into: "new", ...byCodex },
    { label: `${here}, Summarised by Codex`, into: "in-place", ...byCodex },
  ];
  const placeHolder = "Where do you want to continue?";
  const options = { title, placeHolder, ignoreFocusOut: true };
  const chosen = await vscode.window.showQuickPick(items, options);
  return chosen !== undefined && "into" in chosen ? chosen : undefined;
}

// --- going on ------------------------------------------------------------------------------------

/** Compact first if the settings say so, then resume in a terminal (JUN-16, JUN-36). */
export async function resume(app: App, session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const looking = "Checking how full the context is";
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
    const label = "Resume the Compacted Session";
    const detail = "This session was compacted into a new one, which has the newer work.";
    items.push({ label, detail, run: () => openCodex(continuedBy, cwd) });
  }
  if (offer !== null) {
    const label = "Compact First…";
    const detail = "Continue from the checkpoint instead of the whole history.";
    items.push({ label, detail, run: () => openPreview(session) });
  }
  const asIs = { label: "Resume as It Is", run: () => openCodex(found.sessionId, cwd) };
  const how = offer === null ? "continued in another session" : `context ${fullWords(offer)}`;
  const title = `Resume “${cut(subject(session), 60)}”: ${how}`;
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
  const full = `The context of “${cut(subject(session), 60)}” is ${fullWords(session.offer)}.`;
  const [sentence, actions] = session.live
    ? [`${full} Once you close it in Codex, you can compact it without a model.`, [off]]
    : [`${full} Compact it before you continue?`, [now, off]];
  const chosen = await vscode.window.showInformationMessage(sentence, ...actions);
  if (chosen === now) {
    await openPreview(session);
  } else if (chosen === off) {
    await setForAll("compactionOffer", "off");
  }
}
