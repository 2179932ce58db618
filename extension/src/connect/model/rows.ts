/** The rows of the Connection view. */

import { inEditor } from "../../client/model/refusals.ts";
import type { ConnectDoor, ConnectHook, ConnectReport } from "../../client/protocol.ts";
import {
  CODEX_PROBLEMS,
  DOOR_PROBLEMS,
  DOORS,
  LAST_RAN,
  NEVER_RAN,
  TRUST,
} from "../../client/words.ts";
import {
  type Appearance,
  ago,
  cut,
  dotted,
  listed,
  plain,
  rowOf,
} from "../../common/model/text.ts";

/** The action of a row's button; `""` for no button. */
export type Step = "connect" | "repair" | "trust" | "update" | "home" | "";

export interface ConnectionNode {
  /** Stable across reports: the editor keeps rows unfolded by their id. */
  readonly id: string;
  readonly row: Appearance;
  readonly children: readonly ConnectionNode[];
  readonly step: Step;
  /** Whether Codex's configuration has an entry of this extension to remove. */
  readonly isRemovable: boolean;
}

const GOOD = "testing.iconPassed";
const WRONG = "list.warningForeground";

export function connectionNodes(report: ConnectReport, now: number): ConnectionNode[] {
  return [
    ...report.doors.map((door) => doorNode(door, report.hooks, now)),
    codexNode(report),
    ...report.problems.map((problem, place) =>
      leaf(`problem/${place}`, {
        label: cut(plain(problem), 120),
        tooltip: plain(problem),
        icon: "warning",
        colour: WRONG,
      }),
    ),
  ];
}

function doorNode(door: ConnectDoor, hooks: readonly ConnectHook[], now: number): ConnectionNode {
  const isHook = door.door === "hook";
  const step = STEPS[door.next ?? ""] ?? "";
  const label = wordOf(DOORS, door.door);
  const state = stateOf(door);
  const used = door.configured ? lastCall(door.lastRanAt, now) : "";
  const advice = plain(inEditor(door.wayOut ?? ""));
  const purpose = isHook
    ? "Codex gets the checkpoint back after it compacted, and when it resumes a session."
    : "Codex can note down facts and decisions, which are checked.";
  const row: Appearance = {
    label,
    description: dotted(state, used),
    tooltip: [purpose, dotted(state, used), advice].filter((line) => line !== "").join("\n"),
    spoken: listed(label, state, used, advice),
    ...looks(door),
  };
  const isUnknown = door.problem === "unreadable";
  const children = isHook && !isUnknown ? hooks.map((hook) => hookNode(hook, now)) : [];
  const isRemovable = door.problem !== "not_configured" && !isUnknown;
  return { id: `door/${door.door}`, row, children, step, isRemovable };
}

const STEPS: Readonly<Record<string, Step>> = {
  connect: "connect",
  repair: "repair",
  trust: "trust",
  update_codex: "update",
  choose_home: "home",
};

function looks({ problem }: ConnectDoor): Pick<Appearance, "icon" | "colour"> {
  switch (problem) {
    case null:
      return { icon: "pass", colour: GOOD };
    case "not_configured":
      return { icon: "circle-large-outline", colour: null };
    default:
      return { icon: "warning", colour: WRONG };
  }
}

function stateOf({ problem, trusted, failure }: ConnectDoor): string {
  const known = trusted === null ? "connected, trust not known" : "connected";
  const code = problem === "failed" && failure !== null ? `: ${plain(failure.code)}` : "";
  return problem === null ? known : `${wordOf(DOOR_PROBLEMS, problem)}${code}`;
}

/** Return the server's word for a value; the value itself if a newer server has no word here. */
function wordOf(words: Readonly<Record<string, string>>, value: string): string {
  return words[value] ?? plain(value);
}

function lastCall(at: string | null, now: number): string {
  const since = ago(at, now);
  return at === null ? NEVER_RAN : `${LAST_RAN} ${since === "now" ? "just now" : since}`.trim();
}

function hookNode(hook: ConnectHook, now: number): ConnectionNode {
  const { event, configured, trust, enabled, failure } = hook;
  const isTrusted = trust === "trusted" || trust === "managed";
  const state = dotted(
    trust === null ? "" : wordOf(TRUST, trust),
    enabled === false ? DOOR_PROBLEMS.disabled : "",
    failure === null ? "" : `${DOOR_PROBLEMS.failed}: ${plain(failure.code)}`,
    lastCall(hook.lastRanAt, now),
  );
  return leaf(`hook/${event}`, {
    label: plain(event),
    description: configured ? state : DOOR_PROBLEMS.not_configured,
    icon: configured && isTrusted && enabled !== false ? "pass" : "circle-large-outline",
  });
}

function codexNode(report: ConnectReport): ConnectionNode {
  const problem = report.codexProblem === null ? "" : wordOf(CODEX_PROBLEMS, report.codexProblem);
  return leaf("codex", {
    label: "Codex",
    description: dotted(plain(report.codexVersion ?? ""), problem),
    tooltip: [report.codexPath, report.codexHome].map((path) => plain(path ?? "")).join("\n"),
    icon: problem === "" ? "terminal" : "warning",
    colour: problem === "" ? null : WRONG,
  });
}

function leaf(id: string, some: Parameters<typeof rowOf>[0]): ConnectionNode {
  const tooltip = listed(some.label, some.description ?? "");
  return { id, row: rowOf({ tooltip, ...some }), children: [], step: "", isRemovable: false };
}
