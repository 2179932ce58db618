/** What a model sees, as a text that can be read and compared. Whatever it says stays text. */

import { randomUUID } from "node:crypto";
import type { DoctorReport } from "../protocol.ts";
import { counted, plain } from "./text.ts";

/** An item of a history as Codex sends it. */
export interface HistoryItem {
  readonly type?: unknown;
  readonly role?: unknown;
  readonly name?: unknown;
  readonly content?: unknown;
  readonly summary?: unknown;
  readonly arguments?: unknown;
  readonly input?: unknown;
  readonly output?: unknown;
}

/** Of a longer text this much is shown. */
const MOST = 20_000;

// All that a renderer could obey, but for line ends and tabs.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

/** Items one below the other, each under a line that says what it is. */
export function historyText(items: readonly HistoryItem[]): string {
  if (items.length === 0) {
    return `${"(nothing)"}\n`;
  }
  return items.map((item) => `──── ${kindOf(item)}\n${shown(contentOf(item))}\n`).join("\n");
}

function kindOf(item: HistoryItem): string {
  const type = String(item.type ?? "");
  const name = item.role ?? item.name;
  return shownLine(name === undefined ? type : `${type}: ${name}`);
}

function contentOf(item: HistoryItem): string {
  switch (item.type) {
    case "message":
      return partsOf(item.content);
    case "reasoning":
      return partsOf(item.summary);
    case "function_call":
      return String(item.arguments ?? "");
    case "custom_tool_call":
      return String(item.input ?? "");
    case "function_call_output":
    case "custom_tool_call_output":
      return unpacked(partsOf(item.output));
    default:
      return JSON.stringify(item);
  }
}

/** Older outputs are JSON in a text: what was put out stands in it, with its lines. */
function unpacked(text: string): string {
  if (text.startsWith('{"output":')) {
    try {
      const { output } = JSON.parse(text);
      return typeof output === "string" ? output : text;
    } catch {
      // It only begins like one.
    }
  }
  return text;
}

/** The texts of a content; what is no text is named. */
function partsOf(content: unknown): string {
  if (typeof content === "string") {
    return content;
  }
  const parts = Array.isArray(content) ? content : [];
  return parts
    .map((part) => (typeof part?.text === "string" ? part.text : `[${part?.type ?? "?"}]`))
    .join("\n");
}

function shown(text: string): string {
  const left = text.length - MOST;
  const more = counted(left, "(1 more character)", `(${left} more characters)`);
  const some = left > 0 ? `${text.slice(0, MOST)}… ${more}` : text;
  return some.replace(/\r\n?/g, "\n").replace(CONTROLS, " ").toWellFormed();
}

function shownLine(text: string): string {
  return text
    .replace(/[\n\t]/g, " ")
    .replace(CONTROLS, " ")
    .toWellFormed()
    .slice(0, 120);
}

/** Where we look, how much is there, and each finding with its way out. */
export function doctorText(report: DoctorReport): string {
  const head = [
    `Codex home: ${plain(report.codexHome)}`,
    `State folder: ${plain(report.stateDir)}`,
    `Sessions: ${report.sessions}`,
  ];
  const findings = report.findings.map((finding) =>
    [
      `${finding.severity.toUpperCase()}  ${finding.code} (${finding.count})`,
      `    ${plain(finding.message)}`,
      ...(finding.path === null ? [] : [`    ${plain(finding.path)}`]),
      `    → ${plain(finding.wayOut)}`,
    ].join("\n"),
  );
  if (findings.length === 0) {
    findings.push("Nothing to report: everything that is there can be read.");
  }
  const skipped = Object.entries(report.skipped).map(
    ([reason, count]) => `    ${reason}: ${count}`,
  );
  if (skipped.length > 0) {
    findings.push(["Left aside, by reason:", ...skipped].join("\n"));
  }
  return `${[head.join("\n"), ...findings].join("\n\n")}\n`;
}

/** The texts of this window.  A reload forgets them, while the editor keeps the names in its tabs. */
export class KeptTexts {
  readonly #texts = new Map<string, string>();

  /** Keep a text; its name is new, so that no tab of before is taken for this one. */
  keep(text: string): string {
    const name = randomUUID();
    this.#texts.set(name, text);
    return name;
  }

  /** The text of a name; undefined where it was not kept. */
  text(name: string): string | undefined {
    return this.#texts.get(name);
  }
}

/** The absolute path, or null when it must not be opened. */
export function artifactPath(cwd: string | null, uri: string): string | null {
  const isWindows = /^[A-Za-z]:[\\/]|^\\\\/.test(cwd ?? uri);
  const isAbsolute = isWindows ? /^[A-Za-z]:[\\/]/.test(uri) : uri.startsWith("/");
  if (isAbsolute) {
    return isRemote(uri) ? null : uri;
  }
  if (cwd === null || isRemote(uri) || uri.includes("\0")) {
    return null;
  }
  return `${cwd.replace(/[\\/]+$/, "")}/${uri}`;
}

/** Merely opening `\\host\share` sends the user's credentials there. */
function isRemote(uri: string): boolean {
  return /^[\\/]{2}/.test(uri) || /^[a-z][a-z0-9+.-]+:/i.test(uri);
}
