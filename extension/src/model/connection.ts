/** How Codex and we are connected, as rows: a door each, its hooks below it, and one way on. */

import type { ConnectDoor, ConnectHook, ConnectReport } from "../protocol.ts";
import { type Appearance, ago, cut, dotted, listed, plain, type Say } from "./text.ts";

/** What the button of a row does; `""` where nothing is to be done. */
export type Step = "connect" | "repair" | "trust" | "update" | "home" | "";

/** A row with those below it. */
export interface ConnectionNode {
  /** Stays the same while the connection changes, so that unfolded rows stay unfolded. */
  readonly id: string;
  readonly row: Appearance;
  readonly children: readonly ConnectionNode[];
  readonly step: Step;
  /** Whether something of ours stands in Codex's configuration, to be taken out again. */
  readonly isRemovable: boolean;
}

const GOOD = "testing.iconPassed";
const WRONG = "list.warningForeground";

/** The rows of a report: Codex itself, the two doors, other homes, and what is wrong. */
export function connectionNodes(report: ConnectReport, now: number, say: Say): ConnectionNode[] {
  return [
    ...report.doors.map((door) => doorNode(door, report.hooks, now, say)),
    codexNode(report, say),
    ...report.otherHomes.map(({ codexHome, connected, hasSessions }) =>
      leaf(`home/${codexHome}`, {
        label: say("Another Codex home"),
        description: dotted(
          plain(codexHome),
          connected ? say("connected") : say("not connected"),
          hasSessions ? "" : say("no sessions"),
        ),
        icon: "home",
      }),
    ),
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

/** Whether everything is connected and Codex trusts it: nobody has to look again soon. */
export function isSettled(report: ConnectReport): boolean {
  return report.doors.every(({ next }) => next === null);
}

function doorNode(
  door: ConnectDoor,
  hooks: readonly ConnectHook[],
  now: number,
  say: Say,
): ConnectionNode {
  const isHook = door.door === "hook";
  const step = STEPS[door.next ?? ""] ?? "";
  const label = isHook ? say("Hooks") : say("Memory Tools");
  const state = stateOf(door, say);
  const used = door.configured ? lastCall(door.lastRanAt, now, say) : "";
  const advice = plain(door.wayOut ?? "");
  const purpose = isHook
    ? say("Codex gets the checkpoint back after it compacted, and when it resumes a session.")
    : say("Codex can note down facts and decisions, which are checked.");
  const row: Appearance = {
    label,
    description: dotted(state, used),
    tooltip: [purpose, dotted(state, used), advice].filter((line) => line !== "").join("\n"),
    spoken: listed(label, state, used, advice),
    ...looks(door),
  };
  const isUnknown = door.problem === "unreadable";
  const children = isHook && !isUnknown ? hooks.map((hook) => hookNode(hook, now, say)) : [];
  const isRemovable = door.problem !== "not_configured" && !isUnknown;
  return { id: `door/${door.door}`, row, children, step, isRemovable };
}

/** Which button stands for what the server advises. */
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

function stateOf({ problem, trusted, failure, byHand }: ConnectDoor, say: Say): string {
  const words: Readonly<Record<string, string>> = {
    not_configured: say("not connected"),
    unreadable: say("not known: config.toml cannot be read"),
    incomplete: say("some are missing or changed"),
    program_missing: say("what it calls is no longer there"),
    other_program: say("calls another installation"),
    other_folders: say("calls us for other folders"),
    no_hooks: say("this Codex has no hooks"),
    untrusted: say("waits for your trust"),
    disabled: say("switched off in Codex"),
    failed: say("the last call failed: {0}", plain(failure?.code ?? "")),
  };
  const connected = byHand ? say("connected by hand") : say("connected");
  const known = trusted === null ? say("connected, trust not known") : connected;
  return words[problem ?? ""] ?? known;
}

function lastCall(at: string | null, now: number, say: Say): string {
  return at === null ? say("never called") : say("called {0}", ago(at, now, say)).trim();
}

function hookNode(hook: ConnectHook, now: number, say: Say): ConnectionNode {
  const { event, configured, trust, enabled, failure } = hook;
  const isTrusted = trust === "trusted" || trust === "managed";
  const words: Readonly<Record<string, string>> = {
    trusted: say("trusted"),
    managed: say("trusted by your organisation"),
    untrusted: say("not trusted yet"),
    modified: say("changed since you trusted it"),
  };
  const state = dotted(
    trust === null ? "" : (words[trust] ?? plain(trust)),
    enabled === false ? say("switched off in Codex") : "",
    failure === null ? "" : say("the last call failed: {0}", plain(failure.code)),
    lastCall(hook.lastRanAt, now, say),
  );
  return leaf(`hook/${event}`, {
    label: plain(event),
    description: configured ? state : say("not connected"),
    icon: configured && isTrusted && enabled !== false ? "pass" : "circle-large-outline",
  });
}

function codexNode(report: ConnectReport, say: Say): ConnectionNode {
  const problems: Readonly<Record<string, string>> = {
    codex_not_found: say("not found on the PATH"),
    timed_out: say("did not answer in time"),
    codex_failed: say("could not be asked"),
    hooks_unknown: say("this version has no hooks: update it"),
  };
  const problem =
    report.codexProblem === null ? "" : (problems[report.codexProblem] ?? report.codexProblem);
  return leaf("codex", {
    label: say("Codex"),
    description: dotted(plain(report.codexVersion ?? ""), problem),
    tooltip: [report.codexPath, report.codexHome].map((path) => plain(path ?? "")).join("\n"),
    icon: problem === "" ? "terminal" : "warning",
    colour: problem === "" ? null : WRONG,
  });
}

function leaf(
  id: string,
  some: Partial<Appearance> & { readonly label: string; readonly icon: string },
): ConnectionNode {
  const description = some.description ?? "";
  const spoken = listed(some.label, description);
  const row = { description, tooltip: spoken, spoken, colour: null, ...some };
  return { id, row, children: [], step: "", isRemovable: false };
}

/** The changes of a report as one text for a person to read before they agree. */
export function changesText(report: ConnectReport, say: Say): string {
  const files = report.changes.map(({ path, action, backup, diff }) => {
    const verbs: Readonly<Record<string, string>> = {
      create: say("New file: {0}", plain(path)),
      edit: say("Changed: {0}", plain(path)),
      delete: say("Removed: {0}", plain(path)),
    };
    const head = [verbs[action] ?? `${action}: ${plain(path)}`];
    if (backup !== null) {
      head.push(say("The file as it was is kept as {0}", plain(backup)));
    }
    return `${head.join("\n")}\n\n${diff.trimEnd()}`;
  });
  return `${files.join("\n\n\n")}\n`;
}
