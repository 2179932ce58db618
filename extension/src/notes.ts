/** Commands that add, verify and revoke notes. */

import * as vscode from "vscode";
import { type App, type Commands, inView } from "./app.ts";
import { MAX_KEY } from "./limits.ts";
import { type CheckpointNode, isSuspect } from "./model/checkpoint.ts";
import { decisionPayload, factPayload, freeDecisionId, isKey, uriOfFile } from "./model/notes.ts";
import { cut, iconless, plain } from "./model/text.ts";
import {
  type Anchor,
  AnchorsRequest,
  ApplyUpdateRequest,
  type Note,
  NotesRequest,
  RevokeNoteRequest,
  type SessionSummary,
} from "./protocol.ts";
import { confirm } from "./requests.ts";
import { pathForSessions } from "./settings.ts";

/** How many messages and calls are offered as evidence. */
const OFFERED = 60;

export function noteCommands(app: App): Commands {
  return {
    addNote: () => add(app),
    addFactAboutFile: (file?: vscode.Uri) => addAboutFile(app, file),
    verifyNote: (row?: CheckpointNode) => row && verify(app, row.note),
    revokeNote: (row?: CheckpointNode) => row && revoke(app, row.note),
  };
}

async function add(app: App): Promise<void> {
  const kinds = [
    { of: "fact", label: "Fact", detail: "Something learned, and what shows it." },
    { of: "decision", label: "Decision", detail: "Something settled, and why." },
  ];
  const title = "Add a Note";
  const chosen = await vscode.window.showQuickPick(kinds, { title });
  if (chosen?.of === "fact") {
    await inView(app, (session) => addFact(app, session, null));
  } else if (chosen?.of === "decision") {
    await inView(app, (session) => addDecision(app, session));
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
    if (!anchors.some(({ source, ref }) => source === "file" && ref === uri)) {
      await vscode.window.showInformationMessage(
        "The session in view has not used this file, so a fact cannot depend on it.",
      );
      return;
    }
    await addFact(app, session, uri);
  });
}

/** Ask for new evidence of a suspect fact; its text may be corrected too. */
async function verify(app: App, fact: Note | null): Promise<void> {
  if (fact === null || !isSuspect(fact)) {
    return;
  }
  await inView(app, async (session) => {
    const title = "Verify a Fact Again";
    const value = await askText(title, "What is true now?", fact.value ?? "");
    const anchors = await anchorsOf(app, session);
    const newer = anchors.filter(({ source, seq }) => source === "file" || seq > fact.seq);
    const evidence = value && (await askEvidence(title, newer));
    if (!evidence) {
      return;
    }
    const kept = fact.dependsOn.map(({ uri }) => uri);
    const dependsOn = evidence.source === "file" ? [...new Set([...kept, evidence.ref])] : kept;
    await apply(app, session, factPayload({ key: fact.id, value, evidence, dependsOn }));
  });
}

async function revoke(app: App, note: Note | null): Promise<void> {
  if (note === null) {
    return;
  }
  await inView(app, async (session) => {
    const isFact = note.kind === "fact";
    const question = isFact ? "Revoke this fact?" : "Revoke this decision?";
    const detail = plain(isFact ? `${note.id} = ${note.value}` : (note.decision ?? ""));
    if (await confirm(question, detail, "Revoke")) {
      const { sessionId } = session;
      await app.server.request(RevokeNoteRequest, { sessionId, id: note.id, kind: note.kind });
    }
  });
}

async function addFact(app: App, session: SessionSummary, file: string | null): Promise<void> {
  const title = "Add a Fact";
  const key = await askText(title, "A short name for it, such as auth.ttl", "", (text) =>
    isKey(text) ? null : `Letters, digits and . _ - / : only, ${MAX_KEY} at most.`,
  );
  const value = key && (await askText(title, "What is true?", ""));
  if (!key || !value) {
    return;
  }
  const anchors = await anchorsOf(app, session);
  const about = anchors.find(({ source, ref }) => source === "file" && ref === file);
  const evidence = about ?? (await askEvidence(title, anchors));
  const dependsOn = evidence && (await askDependencies(title, anchors, evidence));
  if (evidence && dependsOn) {
    await apply(app, session, factPayload({ key, value, evidence, dependsOn }));
  }
}

async function addDecision(app: App, session: SessionSummary): Promise<void> {
  const title = "Add a Decision";
  const decision = await askText(title, "What was decided?", "");
  const rationale = decision && (await askText(title, "Why?", ""));
  if (!decision || !rationale) {
    return;
  }
  const { items } = await app.server.request(NotesRequest, { sessionId: session.sessionId });
  const replaced = await askReplaced(title, items);
  const evidence = replaced && (await askEvidence(title, await anchorsOf(app, session)));
  if (replaced && evidence) {
    const decisionId = freeDecisionId(items);
    const { supersedes } = replaced;
    const statement = { decisionId, decision, rationale, supersedes, evidence };
    await apply(app, session, decisionPayload(statement));
  }
}

async function anchorsOf({ server }: App, { sessionId }: SessionSummary) {
  return (await server.request(AnchorsRequest, { sessionId, limit: OFFERED })).items;
}

async function apply({ server }: App, { sessionId }: SessionSummary, payload: object) {
  await server.request(ApplyUpdateRequest, { sessionId, payload, dryRun: false });
  vscode.window.setStatusBarMessage("Noted", 2000);
}

export async function askText(
  title: string,
  prompt: string,
  value: string,
  problem: (text: string) => string | null = () => null,
): Promise<string | undefined> {
  const validateInput = (text: string) =>
    text.trim() === "" ? "Enter a text." : problem(text.trim());
  const options = { title, prompt, value, ignoreFocusOut: true, validateInput };
  return (await vscode.window.showInputBox(options))?.trim();
}

async function askEvidence(title: string, anchors: readonly Anchor[]): Promise<Anchor | undefined> {
  const kinds: Record<string, string> = {
    user: "message of the user",
    tool_output: "output of a tool",
    file: "file",
  };
  const items = anchors.map((anchor) => ({
    label: iconless(cut(plain(anchor.text || anchor.ref), 120)),
    description: kinds[anchor.source] ?? "",
    anchor,
  }));
  const placeHolder = "What shows it?";
  const options = { title, placeHolder, matchOnDescription: true, ignoreFocusOut: true };
  return (await vscode.window.showQuickPick(items, options))?.anchor;
}

/** The files that a fact depends on; an evidence file is selected already. */
async function askDependencies(
  title: string,
  anchors: readonly Anchor[],
  evidence: Anchor,
): Promise<readonly string[] | undefined> {
  const files = anchors.filter(({ source }) => source === "file");
  const items = files.map(({ ref }) => ({
    label: iconless(cut(plain(ref), 120)),
    picked: evidence.source === "file" && ref === evidence.ref,
    ref,
  }));
  const placeHolder = "Which files does it rest on? When one changes, the fact is suspect.";
  const options = { title, placeHolder, canPickMany: true, ignoreFocusOut: true } as const;
  return (await vscode.window.showQuickPick(items, options))?.map(({ ref }) => ref);
}

async function askReplaced(title: string, notes: readonly Note[]) {
  const standing = notes.filter((note) => note.kind === "decision" && note.supersededBy === null);
  if (standing.length === 0) {
    return { supersedes: null };
  }
  const none = { label: "It replaces none", description: "", supersedes: null };
  const items = standing.map(({ id, decision }) => ({
    label: iconless(cut(plain(decision ?? ""), 120)),
    description: iconless(plain(id)),
    supersedes: id,
  }));
  const placeHolder = "Which decision does it replace?";
  const options = { title, placeHolder, ignoreFocusOut: true };
  return vscode.window.showQuickPick([none, ...items], options);
}
