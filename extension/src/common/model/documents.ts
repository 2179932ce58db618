/** Texts of documents: the history that the model sees, and the doctor's report. */

import { randomUUID } from "node:crypto";
import { counted, plain, shownText } from "./text.ts";

type Field = "type" | "role" | "name" | "content" | "summary" | "arguments" | "input" | "output";
type HistoryItem = Readonly<Partial<Record<Field, unknown>>>;

const MOST = 20_000;

/** Format a history: each item below a line with its type. */
export function historyText(items: readonly HistoryItem[]): string {
  if (items.length === 0) {
    return "(nothing)\n";
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

/** Return the text of an output; older outputs are JSON around it. */
export function unpacked(text: string): string {
  if (text.startsWith('{"output":')) {
    try {
      const { output } = JSON.parse(text);
      return typeof output === "string" ? output : text;
    } catch {
      // It is not JSON.
    }
  }
  return text;
}

/** Return the texts of a content; other parts appear as their type. */
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
  return shownText(some);
}

function shownLine(text: string): string {
  return plain(text).slice(0, 120);
}

/** The texts of this window; a reload loses them, although their tabs and names stay. */
export class KeptTexts {
  readonly #texts = new Map<string, string>();

  /** Store a text under a new, unique name. */
  keep(text: string): string {
    const name = randomUUID();
    this.#texts.set(name, text);
    return name;
  }

  text(name: string): string | undefined {
    return this.#texts.get(name);
  }
}

/** A file in a diff; the left side is the state before a turn, or at the end of an earlier one. */
export interface ShownFile {
  readonly sessionId: string;
  readonly uri: string;
  readonly turnId: string | null;
  readonly afterTurnId: string | null;
}

export function shownFileText({ sessionId, uri, turnId, afterTurnId }: ShownFile): string {
  return JSON.stringify([sessionId, uri, turnId, afterTurnId]);
}

/** Parse the fragment of a URI; null if it names no file. */
export function readShownFile(text: string): ShownFile | null {
  try {
    const [sessionId, uri, turnId, afterTurnId] = JSON.parse(text) as unknown[];
    const isId = (value: unknown) => value === null || typeof value === "string";
    return typeof sessionId === "string" &&
      typeof uri === "string" &&
      isId(turnId) &&
      isId(afterTurnId)
      ? ({ sessionId, uri, turnId, afterTurnId } as ShownFile)
      : null;
  } catch {
    return null;
  }
}

/** Return a file's absolute path; null if it must not be opened. */
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

/** Opening `\\host\share` would send the user's credentials to that host. */
function isRemote(uri: string): boolean {
  return /^[\\/]{2}/.test(uri) || /^[a-z][a-z0-9+.-]+:/i.test(uri);
}
