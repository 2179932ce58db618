/** Compacts a session, and resumes sessions in a terminal. */

import * as vscode from "vscode";
import type { Compacted, Resumed, SessionSummary } from "../client/protocol.ts";
import { attempt, longRequest } from "../client/requests.ts";
import { setForAll } from "../client/settings.ts";
import { type App, type Commands, onSession, showNew, type Target } from "../common/app.ts";
import { type Action, askToDo, confirmLoss, inform, runCommand } from "../common/messages.ts";
import { cut, harmless, subject } from "../common/model/text.ts";
import { isThere, openCodex } from "../common/terminal.ts";
import { figures, fullWords, Hints, notice } from "./model/texts.ts";

export function compactionCommands(
  app: App,
  preview: (session: SessionSummary) => Promise<void>,
): Commands {
  return {
    compactSession: onSession(app, preview),
    undoCompaction: (target?: Target) =>
      target?.kind === "window" && target.window.compactionId !== null
        ? undo(app, target.window.compactionId, target.session.sessionId)
        : onSession(app, (session) => undoNewest(app, session))(target),
    resumeSession: onSession(app, (session) => resume(app, session)),
    showLosses: onSession(app, async ({ sessionId }) => {
      app.reports.open("losses", { sessionId });
    }),
  };
}

/** Open the preview of a compaction. */
async function openPreview({ sessionId }: SessionSummary): Promise<void> {
  await runCommand("compactSession", { sessionId });
}

/** Ask where the work continues, and compact; false if the user cancels. */
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
  const isSure = () => confirmLoss(question, keeps, "Compact in Place", "Don’t Compact");
  if (into === "in-place" && !(await isSure())) {
    return false;
  }
  const title = strategy === "codex" ? `Codex summarises ${name}` : `Compacting ${name}`;
  const how = { placement: "manual", force, digestTokens };
  const asked = { sessionId: session.sessionId, into, strategy, ...how };
  const done = await longRequest(app.server, title, "compact", asked);
  if (done === undefined) {
    return false;
  }
  void attempt(() => showDone(app, session, done));
  return true;
}

async function showDone(app: App, session: SessionSummary, done: Compacted): Promise<void> {
  const { sessionId, compactionId } = done;
  if (done.into === "new" && sessionId !== null) {
    void attempt(() => showNew(app, sessionId, session.sessionId, true));
  }
  const resuming = { "Resume in Terminal": () => sessionId && openCodex(sessionId, session.cwd) };
  const undoing = { Undo: () => compactionId && undo(app, compactionId, sessionId) };
  const report = async () => {
    app.reports.open("compaction", { name: compactionId ?? "" });
    // A button closes its notification, but after reading the report the user may want to undo.
    await inform(notice(done), { ...resuming, ...undoing });
  };
  await inform(notice(done), { ...resuming, "Open Report": report, ...undoing });
}

/** Sessions with a compaction undone in this window: they get no further offer. */
const undone = new Set<string>();

/** Undo a compaction; `made` is the session that it created or changed. */
function undo(app: App, compactionId: string, made: string | null): Promise<void> {
  return attempt(async () => {
    const { into, sourceSessionId } = await app.server.request("uncompact", { compactionId });
    undone.add(sourceSessionId);
    if (into === "new") {
      void attempt(() => showNew(app, sourceSessionId, made ?? undefined, true));
    }
    const sentence =
      into === "new"
        ? "Compaction undone. Go on in the original session."
        : "Compaction undone. Codex sees the whole history again.";
    vscode.window.setStatusBarMessage(sentence, 8000);
  });
}

async function undoNewest(app: App, { sessionId }: SessionSummary): Promise<void> {
  const { items } = await app.server.request("windows", { sessionId });
  const newest = items.findLast(({ compactionId, undone }) => compactionId !== null && !undone);
  if (newest?.compactionId) {
    await undo(app, newest.compactionId, sessionId);
  } else {
    await inform("There is no compaction to undo in this session.");
  }
}

/** How and where to compact. */
interface Place extends vscode.QuickPickItem {
  readonly how?: { readonly into: string; readonly strategy: string };
}

/** Ask where the work continues, and whether Codex writes the summary. */
async function askPlace(title: string): Promise<Place["how"]> {
  const label = "With a summary by Codex’s model";
  const own = { label, kind: vscode.QuickPickItemKind.Separator };
  const stays = "This session stays as it is. The new one starts from its checkpoint.";
  const appended = "Adds to this session’s file. Close the session in Codex first.";
  const [fresh, here] = ["Into a New Session", "In Place"];
  const to = (into: string, strategy: string) => ({ how: { into, strategy } });
  const detail = "Uses one model call, in a temporary fork.";
  const byCodex = [
    { label: `${fresh}, Summarised by Codex`, detail, ...to("new", "codex") },
    { label: `${here}, Summarised by Codex`, detail, ...to("in-place", "codex") },
  ];
  const missing = {
    label: "Summarised by Codex: Not Available",
    iconPath: new vscode.ThemeIcon("circle-slash"),
    detail: "It needs the Codex CLI, which is not on the PATH of this machine.",
  };
  const items: readonly Place[] = [
    { label: fresh, detail: stays, ...to("new", "checkpoint") },
    { label: here, detail: appended, ...to("in-place", "checkpoint") },
    own,
    ...(isThere("codex") ? byCodex : [missing]),
  ];
  const placeHolder = "Where do you want to continue?";
  const options = { title, placeHolder, ignoreFocusOut: true };
  return (await vscode.window.showQuickPick(items, options))?.how;
}

/** Compact first if the settings say so, then resume in a terminal (JUN-16, JUN-36). */
export async function resume(app: App, session: SessionSummary): Promise<void> {
  const { sessionId } = session;
  const looking = "Checking how full the context is";
  const found = await longRequest(app.server, looking, "resume", { sessionId });
  if (found === undefined) {
    return;
  }
  const { compacted, notCompacted } = found;
  if (found.live) {
    void inform("Codex has this session open already.");
    return;
  }
  if (compacted !== null) {
    void attempt(() => showDone(app, session, compacted));
  } else if (notCompacted !== null) {
    void inform(`It was not compacted first. ${harmless(notCompacted.message)}`);
  }
  await resumeOrAsk(session, found);
}

/** Resume; ask how if there is a choice. */
async function resumeOrAsk(session: SessionSummary, found: Resumed): Promise<void> {
  const { sessionId, offer, continuedBy, cwd } = found;
  const ways: Action[] = [];
  if (continuedBy !== null) {
    const label = "Resume the Compacted Session";
    const detail = "This session was compacted into a new one, which has the newer work.";
    ways.push({ label, detail, run: () => openCodex(continuedBy, cwd) });
  }
  if (offer !== null) {
    const label = "Compact First…";
    const detail = "Continue from the checkpoint instead of the whole history.";
    ways.push({ label, detail, run: () => openPreview(session) });
  }
  const asIs = { label: "Resume as It Is", run: () => openCodex(sessionId, cwd) };
  const how = offer === null ? "continued in another session" : `context ${fullWords(offer)}`;
  const title = `Resume “${cut(subject(session), 60)}”: ${how}`;
  await (ways.length === 0 ? asIs.run() : askToDo(title, [...ways, asIs], ""));
}

/** Offer once to compact the session in view; for a running session only show that it is due. */
export function offerCompaction(app: App): vscode.Disposable {
  const hints = new Hints(Date.now());
  return app.following.onDidChange(({ session }) => {
    if (session !== null && !undone.has(session.sessionId) && hints.isDue(session)) {
      void attempt(() => hint(session));
    }
  });
}

async function hint(session: SessionSummary): Promise<void> {
  if (session.offer === null) {
    return;
  }
  const full = `The context of “${cut(subject(session), 60)}” is ${fullWords(session.offer)}.`;
  const off = { "Turn Off": () => setForAll("compactionOffer", "off") };
  await (session.live
    ? inform(`${full} Once you close it in Codex, you can compact it without a model.`, off)
    : inform(`${full} Compact it before you continue?`, {
        "Compact…": () => openPreview(session),
        ...off,
      }));
}
