/** Small session files, as Codex before 0.150 wrote them: enough to stand in a list. */

import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Told {
  readonly task: string;
  readonly cwd: string;
  /** Minutes since its last record. */
  readonly age?: number;
  /** Steps of its plan, none of them done. */
  readonly plan?: readonly string[];
  /** Commands that it ran. */
  readonly commands?: readonly string[];
  /** What each of them put out. */
  readonly output?: string;
  /** What the model said in the end. */
  readonly answer?: string;
}

/** Write one; its id. */
export function writeSession(codexHome: string, told: Told): string {
  const id = randomUUID();
  const time = new Date(Date.now() - (told.age ?? 1) * 60_000).toISOString();
  const payloads: [string, object][] = [
    ["session_meta", { id, timestamp: time, cwd: told.cwd, cli_version: "0.98.0", source: "cli" }],
    ["turn_context", { cwd: told.cwd, model: "gpt-5.2-codex" }],
    ["event_msg", { type: "user_message", message: told.task, images: [] }],
    ...planned(told.plan ?? []),
    ...(told.commands ?? []).flatMap((command, index) => ran(command, index, told.output ?? "")),
    ...answered(told.answer),
  ];
  const lines = payloads.map(([type, payload]) =>
    JSON.stringify({ timestamp: time, type, payload }),
  );
  const [year = "", month = "", day = ""] = time.slice(0, 10).split("-");
  const folder = join(codexHome, "sessions", year, month, day);
  const name = `rollout-${time.slice(0, 19).replaceAll(":", "-")}-${id}.jsonl`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(""));
  return id;
}

function planned(steps: readonly string[]): [string, object][] {
  const plan = steps.map((step) => ({ step, status: "pending" }));
  const call = { name: "update_plan", arguments: JSON.stringify({ plan }), call_id: "call_plan" };
  return steps.length === 0 ? [] : [["response_item", { type: "function_call", ...call }]];
}

function answered(text: string | undefined): [string, object][] {
  const content = [{ type: "output_text", text }];
  return text === undefined
    ? []
    : [["response_item", { type: "message", role: "assistant", content }]];
}

function ran(command: string, index: number, said: string): [string, object][] {
  const call_id = `call_${index}`;
  const call = { name: "shell", arguments: JSON.stringify({ command: ["bash", "-lc", command] }) };
  const output = JSON.stringify({ output: said, metadata: { exit_code: 0 } });
  return [
    ["response_item", { type: "function_call", ...call, call_id }],
    ["response_item", { type: "function_call_output", call_id, output }],
  ];
}
