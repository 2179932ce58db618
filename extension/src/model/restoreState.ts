/** What was known at the turn of a restore: task, plan, decisions, facts, modes. */

import { code, facts, objects, type Section, table, type Value, word } from "./report.ts";
import { plain, type Say } from "./text.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The sections about it; few where the state can no longer be told. */
export function knownState(state: unknown, modes: readonly Fields[], say: Say): Section[] {
  const { task, plan, decisions, facts: found } = Object(state) as Fields;
  const { steps: all, done: ticks } = Object(plan) as Fields;
  const done = Object(ticks) as Fields;
  const steps = objects(all).map((step): Value[] => [
    done[word(step, "id")] === true ? say("done") : say("open"),
    word(step, "text"),
  ]);
  const decided = objects(decisions).map((each): Value[] => [
    code(word(each, "decisionId")),
    word(each, "decision"),
    word(each, "supersededBy") === "" ? "" : say("replaced"),
  ]);
  const kept = Object.entries(Object(found) as Fields).map(([key, fact]): Value[] => [
    code(key),
    word(fact, "value"),
  ]);
  const goal = plain(word(task, "text"));
  return [
    ...(goal === "" ? [] : [facts("state", say("Known at the turn"), [[say("Task"), goal]], true)]),
    ...table("plan", say("Plan"), [say("Standing"), say("Step")], steps),
    ...table("decisions", say("Decisions"), [say("ID"), say("Decision"), say("Standing")], decided),
    ...table("facts", say("Facts"), [say("Key"), say("Value")], kept),
    ...table(
      "modes",
      say("Modes"),
      [say("Mode"), say("From record"), say("Turn")],
      modes.map((each) => [word(each, "mode"), word(each, "seq"), code(word(each, "turnId"))]),
    ),
  ];
}
