/** The rows of the Connection view. */

import { inEditor } from "../../client/model/refusals.ts";
import type { ConnectDoor, ConnectHook, ConnectReport } from "../../client/protocol.ts";
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
  const label = isHook ? "Hooks" : "Memory Tools";
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
  const words: Readonly<Record<string, string>> = {
    not_configured: "not connected",
    unreadable: "not known: config.toml cannot be read",
    program_missing: "the program it calls no longer exists",
    outdated: "not as it would be connected now",
    no_hooks: "this Codex has no hooks",
    untrusted: "waiting for you to trust it",
    disabled: "switched off in Codex",
    failed: `the last call failed: ${plain(failure?.code ?? "")}`,
  };
  const known = trusted === null ? "connected, trust not known" : "connected";
  return words[problem ?? ""] ?? known;
}

function lastCall(at: string | null, now: number): string {
  return at === null ? "never called" : `called ${ago(at, now)}`.trim();
}

function hookNode(hook: ConnectHook, now: number): ConnectionNode {
  const { event, configured, trust, enabled, failure } = hook;
  const isTrusted = trust === "trusted" || trust === "managed";
  const words: Readonly<Record<string, string>> = {
    trusted: "trusted",
    managed: "trusted by your organisation",
    untrusted: "not trusted yet",
    modified: "changed since you trusted it",
  };
  const state = dotted(
    trust === null ? "" : (words[trust] ?? plain(trust)),
    enabled === false ? "switched off in Codex" : "",
    failure === null ? "" : `the last call failed: ${plain(failure.code)}`,
    lastCall(hook.lastRanAt, now),
  );
  return leaf(`hook/${event}`, {
    label: plain(event),
    description: configured ? state : "not connected",
    icon: configured && isTrusted && enabled !== false ? "pass" : "circle-large-outline",
  });
}

function codexNode(report: ConnectReport): ConnectionNode {
  const problems: Readonly<Record<string, string>> = {
    codex_not_found: "not found on the PATH",
    timed_out: "did not answer in time",
    codex_failed: "could not be asked",
    hooks_unknown: "this version has no hooks: update it",
  };
  const problem =
    report.codexProblem === null ? "" : (problems[report.codexProblem] ?? report.codexProblem);
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
