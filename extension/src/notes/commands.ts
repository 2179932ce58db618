/** Commands that add, verify and revoke notes. */

import * as vscode from "vscode";
import { type CheckpointNode, isSuspect } from "../checkpoint/model/rows.ts";
import type { Anchor, Note, SessionSummary } from "../client/protocol.ts";
import { pathForSessions } from "../client/settings.ts";
import { type App, type Commands, inView, onSession, type Target } from "../common/app.ts";
import { confirmLoss, showDone } from "../common/messages.ts";
import { cut, folderName, harmless, iconless, plain } from "../common/model/text.ts";
import {
  decisionIn,
  decisionPayload,
  dependenciesOf,
  factIn,
  factPayload,
  fitting,
  freeDecisionId,
  uriOfFile,
} from "./model/payloads.ts";

/** Maximum number of messages and calls offered as evidence. */
const OFFERED = 60;

export function noteCommands(app: App): Commands {
  return {
    addNote: (target?: Target) => onSession(app, (session) => add(app, session))(target),
    addFactAboutFile: (file?: vscode.Uri) => addAboutFile(app, file),
    verifyNote: onNote(app, verify),
    replaceNote: onNote(app, replace),
    revokeNote: onNote(app, revoke),
  };
}

/** Make a command that acts on a row's note. */
function onNote(app: App, act: (app: App, session: SessionSummary, note: Note) => Promise<void>) {
  return (row?: CheckpointNode) => {
    const note = row?.note;
    return note ? inView(app, (session) => act(app, session, note)) : undefined;
  };
}

/** Ask for a text, whether it is a fact or a decision, and its evidence. */
async function add(app: App, session: SessionSummary): Promise<void> {
  const prompt = "Fact or decision to remember";
  const text = await askText("Add a Note", prompt, "");
  if (text === undefined) {
    return;
  }
  const fact = {
    label: "Fact",
    detail: "Something that is true, such as “auth.ttl = 900 seconds”.",
  };
  const decision = { label: "Decision", detail: "Something that is settled, and why." };
  const options = { title: "Add a Note", placeHolder: "What is it?", ignoreFocusOut: true };
  const chosen = await vscode.window.showQuickPick([fact, decision], options);
  if (chosen === fact) {
    await addFact(app, session, text, null);
  } else if (chosen === decision) {
    await addDecision(app, session, text, null);
  }
}

/** Ask for a fact that depends on this file. */
async function addAboutFile(app: App, file: vscode.Uri | undefined): Promise<void> {
  const target = file ?? vscode.window.activeTextEditor?.document.uri;
  if (target?.scheme !== "file") {
    return;
  }
  await inView(app, async (session) => {
    const uri = uriOfFile(session.cwd, await pathForSessions(target));
    const anchors = await anchorsOf(app, session);
    const about = anchors.find(({ source, ref }) => source === "file" && ref === uri);
    if (about === undefined) {
      const without = "Add Note without the File";
      const sentence = `In this session Codex never opened ${plain(folderName(uri))}.`;
      if ((await vscode.window.showInformationMessage(harmless(sentence), without)) === without) {
        await add(app, session);
      }
      return;
    }
    const text = await askText("Add a Fact", `What is true about ${plain(uri)}?`, "");
    if (text) {
      await addFact(app, session, text, about);
    }
  });
}

/** Ask for new evidence of a suspect fact; its text may be corrected too. */
async function verify(app: App, session: SessionSummary, fact: Note): Promise<void> {
  if (isSuspect(fact)) {
    const title = "Verify a Fact Again";
    const value = await askText(title, "What is true now?", fact.value ?? "");
    const anchors = await anchorsOf(app, session);
    const newer = anchors.filter(({ source, seq }) => source === "file" || seq > fact.seq);
    const evidence = value && (await askEvidence(title, value, newer));
    if (!evidence) {
      return;
    }
    const kept = fact.dependsOn.map(({ uri }) => uri);
    const dependsOn = evidence.source === "file" ? [...new Set([...kept, evidence.ref])] : kept;
    await apply(
      app,
      session,
      factPayload({ key: fact.id, value, evidence, dependsOn }),
      `facts/${fact.id}`,
    );
  }
}

async function revoke({ server }: App, session: SessionSummary, note: Note): Promise<void> {
  const isFact = note.kind === "fact";
  const question = isFact ? "Revoke this fact?" : "Revoke this decision?";
  const detail = plain(isFact ? `${note.id} = ${note.value}` : (note.decision ?? ""));
  if (await confirmLoss(question, detail, "Revoke")) {
    const { sessionId } = session;
    await server.request("revokeNote", { sessionId, id: note.id, kind: note.kind });
  }
}

/** Change a note's text: edit the fact with that id, or replace a decision. */
async function replace(app: App, session: SessionSummary, note: Note): Promise<void> {
  const [title, before] =
    note.kind === "fact"
      ? ["Change a Fact", note.value]
      : ["Replace a Decision", `${note.decision} because ${note.rationale}`];
  const text = await askText(title, "What holds now?", before ?? "");
  if (text && note.kind === "fact") {
    await addFact(app, session, text, null, note.id);
  } else if (text) {
    await addDecision(app, session, text, note.id);
  }
}

/** Add a fact; without `about` ask for its evidence, without `id` derive one from the text. */
async function addFact(
  app: App,
  session: SessionSummary,
  text: string,
  about: Anchor | null,
  id: string | null = null,
): Promise<void> {
  const title = "Add a Fact";
  const [anchors, notes] = await Promise.all([anchorsOf(app, session), notesOf(app, session)]);
  const { key, value } = id === null ? factIn(text, notes) : { key: id, value: text };
  const evidence = about ?? (await askEvidence(title, text, anchors));
  if (evidence === undefined) {
    return;
  }
  const files = dependenciesOf(text, evidence, anchors);
  // Only the user's statements are valid regardless of the files.
  const rests = files.length > 0 || evidence.source === "user";
  const dependsOn = rests ? files : await askDependencies(title, anchors);
  if (dependsOn !== undefined) {
    await apply(app, session, factPayload({ key, value, evidence, dependsOn }), `facts/${key}`);
  }
}

async function addDecision(
  app: App,
  session: SessionSummary,
  text: string,
  supersedes: string | null,
): Promise<void> {
  const title = "Add a Decision";
  const { decision, rationale: said } = decisionIn(text);
  const rationale = said ?? (await askText(title, "Why?", ""));
  if (!rationale) {
    return;
  }
  const [anchors, notes] = await Promise.all([anchorsOf(app, session), notesOf(app, session)]);
  const evidence = await askEvidence(title, text, anchors);
  if (evidence !== undefined) {
    const decisionId = freeDecisionId(notes);
    const statement = { decisionId, decision, rationale, supersedes, evidence };
    await apply(app, session, decisionPayload(statement), `decisions/${decisionId}`);
  }
}

async function notesOf({ server }: App, { sessionId }: SessionSummary) {
  return (await server.request("notes", { sessionId })).items;
}

async function anchorsOf({ server }: App, { sessionId }: SessionSummary) {
  return (await server.request("anchors", { sessionId, limit: OFFERED })).items;
}

/** Add a note and select its row. */
async function apply(
  { server, checkpoint }: App,
  { sessionId }: SessionSummary,
  payload: object,
  row: string,
): Promise<void> {
  await server.request("applyUpdate", { sessionId, payload, dryRun: false });
  checkpoint.show(row);
  showDone("Noted");
}

export async function askText(
  title: string,
  prompt: string,
  value: string,
): Promise<string | undefined> {
  const validateInput = (text: string) => (text.trim() === "" ? "Enter a text." : null);
  const options = { title, prompt, value, ignoreFocusOut: true, validateInput };
  return (await vscode.window.showInputBox(options))?.trim();
}

/** Ask for evidence; the newest match for the text is preselected. */
async function askEvidence(
  title: string,
  text: string,
  anchors: readonly Anchor[],
): Promise<Anchor | undefined> {
  const kinds: Record<string, readonly [words: string, icon: string]> = {
    user: ["you", "comment"],
    tool_output: ["command output", "terminal"],
    file: ["in file", "file"],
  };
  const all = fitting(text, anchors).map((anchor) => {
    const [description = "", icon = "record"] = kinds[anchor.source] ?? [];
    const label = iconless(cut(plain(anchor.text || anchor.ref), 120));
    return { label, description, iconPath: new vscode.ThemeIcon(icon), anchor };
  });
  const options = { title, placeHolder: "What is the evidence?", ignoreFocusOut: true };
  return (await vscode.window.showQuickPick(all, options))?.anchor;
}

/** Ask for the files that a fact depends on. */
async function askDependencies(
  title: string,
  anchors: readonly Anchor[],
): Promise<readonly string[] | undefined> {
  const files = anchors.filter(({ source }) => source === "file");
  const items = files.map(({ ref }) => ({ label: iconless(cut(plain(ref), 120)), ref }));
  const placeHolder = "Which files does it depend on? When one changes, the fact is suspect.";
  const options = { title, placeHolder, canPickMany: true, ignoreFocusOut: true } as const;
  return (await vscode.window.showQuickPick(items, options))?.map(({ ref }) => ref);
}
