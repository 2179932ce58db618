/** What was known at the turn of a restore: task, plan, decisions, facts, modes. */

import { code, facts, objects, type Section, table, type Value, word } from "./report.ts";
import { plain } from "./text.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The sections about it; few where the state can no longer be told. */
export function knownState(state: unknown, modes: readonly Fields[]): Section[] {
  const { task, plan, decisions, facts: found } = Object(state) as Fields;
  const { steps: all, done: ticks } = Object(plan) as Fields;
  const done = Object(ticks) as Fields;
  const steps = objects(all).map((step): Value[] => [
    done[word(step, "id")] === true ? "done" : "open",
    word(step, "text"),
  ]);
  const decided = objects(decisions).map((each): Value[] => [
    code(word(each, "decisionId")),
    word(each, "decision"),
    word(each, "supersededBy") === "" ? "" : "replaced",
  ]);
  const kept = Object.entries(Object(found) as Fields).map(([key, fact]): Value[] => [
    code(key),
    word(fact, "value"),
  ]);
  const goal = plain(word(task, "text"));
  return [
    ...(goal === "" ? [] : [facts("state", "Known at the turn", [["Task", goal]], true)]),
    ...table("plan", "Plan", ["Standing", "Step"], steps),
    ...table("decisions", "Decisions", ["ID", "Decision", "Standing"], decided),
    ...table("facts", "Facts", ["Key", "Value"], kept),
    ...table(
      "modes",
      "Modes",
      ["Mode", "From record", "Turn"],
      modes.map((each) => [word(each, "mode"), word(each, "seq"), code(word(each, "turnId"))]),
    ),
  ];
}
