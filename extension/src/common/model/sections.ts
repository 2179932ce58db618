/** Pages described by the server: their ids, their commands, and the targets that can be opened. */

import type { PageLink, ShownPage } from "../../client/protocol.ts";
import { cut, dotted, plain } from "./text.ts";

/** The subject of a page, as in `PageParams`; empty if unused. */
export interface PageIds {
  readonly kind: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly name: string;
  readonly folder: string;
}

/** The names of the ids, which a page keeps across reloads. */
export const PAGE_IDS = ["kind", "sessionId", "turnId", "name", "folder"] as const;

/** The message that fills a page. */
export interface SectionsView {
  readonly kind: "sections";
  readonly ids: PageIds;
  readonly page: ShownPage;
}

/** The commands that a page may name, with their labels. */
export const COMMANDS: Readonly<Record<string, { label: string; command: string }>> = {
  archive: { label: "Archive Session", command: "archiveSession" },
  compact: { label: "Compact Session…", command: "compactSession" },
  connect: { label: "Connect Codex…", command: "connect" },
  disconnect: { label: "Disconnect Codex…", command: "disconnect" },
  doctor: { label: "Open Doctor Report", command: "doctor" },
  import: { label: "Import", command: "importSession" },
  lineage: { label: "Open Session Page", command: "openSessionPage" },
  resume: { label: "Resume in Terminal", command: "resumeSession" },
  "reset-context": { label: "Reset context for performance", command: "resetContext" },
  "restore-again": { label: "Restore Again…", command: "resetContext" },
  unarchive: { label: "Unarchive Session", command: "unarchiveSession" },
  uncompact: { label: "Undo Compaction", command: "undoCompaction" },
  view: { label: "Show Checkpoint as Text", command: "showView" },
  watch: { label: "Restart Server", command: "restart" },
};

/** The settings that a page may name, without the extension's prefix. */
export const SETTINGS: readonly string[] = ["codexHome", "stateDir"];

/** Return the editor's label of a link whose text is for the command line, else null. */
export function labelOf({ kind, name }: PageLink): string | null {
  if (kind === "command") {
    return COMMANDS[name]?.label ?? null;
  }
  return kind === "setting" && SETTINGS.includes(name) ? `codexCheckpoints.${name}` : null;
}

const KINDS = ["session", "record", "turn", "file", "command", "setting"];

/** Parse the target sent by a page; null unless the extension may open it. */
export function readTarget(value: unknown): PageLink | null {
  const { kind, name, sessionId } = Object(value) as Record<string, unknown>;
  const isLink =
    KINDS.includes(String(kind)) &&
    typeof name === "string" &&
    (sessionId === null || typeof sessionId === "string");
  if (!isLink) {
    return null;
  }
  const link = { kind: String(kind), name, sessionId };
  const isNamed = kind === "command" || kind === "setting";
  return isNamed && labelOf(link) === null ? null : link;
}

/** The tab's title: the page's title, and its session's. */
export function tabTitle({ title, about }: ShownPage): string {
  const parts = about.flatMap(({ parts }) => parts);
  const session = parts.find(({ link }) => link?.kind === "session")?.text ?? "";
  return dotted(plain(title), cut(plain(session), 40));
}

/** The buttons of pages that ask for confirmation before anything is written. */
export const QUESTIONS: Readonly<Record<string, string>> = {
  connect: "Connect",
  disconnect: "Disconnect",
  import: "Import",
};
