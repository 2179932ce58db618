/** Rows and texts about sources, branches and the lineage of a session. */

import type { Branch, Lineage, LineageLink, LineageNode } from "../protocol.ts";
import { type Appearance, age, cut, dotted, iconless, listed, plain, utcTime } from "./text.ts";

export type End = "source" | "branch";

/** A row that leads to the source or to a branch. */
export function branchRow(branch: Branch, end: End, now: number): Appearance {
  const title = titleOf(branch.title, branch.sessionId);
  const label = end === "source" ? `Source: ${title}` : `Branch: ${title}`;
  const made = madeWords(branch.kind, branch.mode);
  const since = age(branch.at, now);
  const standing = standingOf(branch);
  return {
    label: cut(label, 60),
    description: dotted(standing, made, since),
    tooltip: [
      label,
      dotted(made, branch.at === null ? "" : utcTime(plain(branch.at))),
      standing,
      `Session: ${plain(branch.sessionId)}`,
    ]
      .filter((line) => line !== "")
      .join("\n"),
    spoken: listed(label, standing, made, since),
    icon: iconOf(branch, end),
    colour: null,
  };
}

export function madeWords(kind: string, mode: string | null): string {
  if (kind === "restore" && mode !== null) {
    return mode === "hard" ? "restored, context reset" : "restored with context";
  }
  return MADE[kind] ?? "forked";
}

const MADE: Readonly<Record<string, string>> = {
  restore: "restored",
  compaction: "compacted",
  import: "imported",
  revert: "rolled back",
  subagent: "subagent",
};

const STEP = "\u00a0".repeat(4);

/** The tree of a session, to choose from; `opens` is false for what cannot be shown. */
export function lineageChoices(lineage: Lineage) {
  const titles = new Map(lineage.nodes.map((node) => [node.id, titleOf(node.title, node.id)]));
  return lineage.nodes.map((node) => {
    const isHere = node.id === lineage.sessionId;
    const title = titleOf(node.title, node.id);
    const bend = node.depth === 0 ? "" : `${STEP.repeat(node.depth - 1)}└ `;
    return {
      id: node.id,
      label: `${bend}${iconless(cut(title, 80))}`,
      description: dotted(isHere ? "this session" : "", standingOf(node)),
      detail: `${STEP.repeat(node.depth)}${iconless(edgeWords(node, titles))}`,
      isHere,
      opens: node.available && node.link?.kind !== "revert",
    };
  });
}

/** The same tree as a text, with every id and cut. */
export function lineageText(lineage: Lineage): string {
  const titles = new Map(lineage.nodes.map((node) => [node.id, titleOf(node.title, node.id)]));
  const blocks = lineage.nodes.map((node) => {
    const indent = "    ".repeat(node.depth);
    const windows = node.windows.map((window) =>
      dotted(
        `Window ${window.number}`,
        window.windowId === null ? "" : plain(window.windowId),
        window.openedAt === null ? "" : utcTime(plain(window.openedAt)),
      ),
    );
    const lines = [
      titleOf(node.title, node.id),
      `  ${dotted(plain(node.id), node.id === lineage.sessionId ? "this session" : "", standingOf(node))}`,
      `  ${edgeWords(node, titles)}`,
      ...(node.link?.turnId ? [`  Turn: ${plain(node.link.turnId)}`] : []),
      ...(node.link?.operationId ? [`  Operation: ${plain(node.link.operationId)}`] : []),
      ...(node.link?.checkpointId ? [`  Marker: ${plain(node.link.checkpointId)}`] : []),
      ...windows.map((line) => `  ${line}`),
    ];
    return lines.map((line) => `${indent}${line}`).join("\n");
  });
  const circles =
    lineage.circles.length === 0
      ? []
      : [`Left out because they refer to each other: ${lineage.circles.length}`];
  const omitted = lineage.omitted === 0 ? [] : [`${lineage.omitted} more`];
  return `${[...blocks, ...circles, ...omitted].join("\n\n")}\n`;
}

/** How a session was made from the one above, and at which place of it. */
function edgeWords(node: LineageNode, titles: ReadonlyMap<string, string>): string {
  const { link } = node;
  if (link === null) {
    return "the original session";
  }
  const from = cut(titles.get(link.parent) ?? short(link.parent), 40);
  return dotted(
    `${madeWords(link.kind, null)} ${link.kind === "subagent" ? "of" : "from"} “${from}”${turnWords(link)}`,
    link.at === null ? "" : utcTime(plain(link.at)),
  );
}

/** Behind which turn of its parent a session begins. */
export function turnWords({ kind, afterTurn }: LineageLink): string {
  if (afterTurn === null) {
    return "";
  }
  if (kind === "subagent") {
    return ` in turn ${afterTurn}`;
  }
  return afterTurn === 0 ? " before turn 1" : ` after turn ${afterTurn}`;
}

export function standingOf(session: {
  readonly available: boolean;
  readonly archived: boolean;
  readonly undone: boolean;
}): string {
  const undone = session.undone ? "compaction undone" : "";
  if (!session.available) {
    return dotted("no longer here", undone);
  }
  return dotted(session.archived ? "archived" : "", undone);
}

/** The title of a session, else the beginning of its id. */
export function titleOf(title: string | null, id: string): string {
  return cut(plain(title ?? ""), 160) || short(id);
}

function short(id: string): string {
  return plain(id).slice(0, 13);
}

function iconOf({ kind, available }: Branch, end: End): string {
  if (!available) {
    return "circle-slash";
  }
  if (end === "source") {
    return "arrow-up";
  }
  return kind === "compaction" ? "fold" : kind === "fork" ? "repo-forked" : "git-branch";
}
