/** Rows and texts about a session's source and branches. */

import type { Branch, LineageLink } from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  cut,
  dotted,
  listed,
  plain,
  utcTime,
} from "../../common/model/text.ts";

export type End = "source" | "branch";

/** The row of a source or a branch. */
export function branchRow(branch: Branch, end: End, now: number): Appearance {
  const title = titleOf(branch.title, branch.sessionId);
  const label = end === "source" ? `Source: ${title}` : `Branch: ${title}`;
  const made = madeWords(branch.kind, branch.mode);
  const since = age(branch.at, now);
  const state = sessionState(branch, end === "source" && branch.kind === "pull");
  return {
    label: cut(label, 160),
    description: dotted(state, made, since),
    tooltip: [
      label,
      dotted(made, branch.at === null ? "" : utcTime(plain(branch.at))),
      state,
      `Session: ${plain(branch.sessionId)}`,
    ]
      .filter((line) => line !== "")
      .join("\n"),
    spoken: listed(label, state, made, since),
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
  pull: "pulled",
  revert: "rolled back",
  subagent: "subagent",
};

/** Name the turn after which a session leaves its parent. */
export function turnWords({ afterTurn }: LineageLink): string {
  if (afterTurn === null) {
    return "";
  }
  return afterTurn === 0 ? " before turn 1" : ` after turn ${afterTurn}`;
}

/** Describe the state of a session; with `isRemote`, a missing one is in the remote. */
export function sessionState(
  session: {
    readonly available: boolean;
    readonly archived: boolean;
    readonly undone: boolean;
  },
  isRemote = false,
): string {
  const undone = session.undone ? "compaction undone" : "";
  if (!session.available) {
    return dotted(isRemote ? "in the remote" : "no longer here", undone);
  }
  return dotted(session.archived ? "archived" : "", undone);
}

/** Return a session's title, else the beginning of its id. */
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
