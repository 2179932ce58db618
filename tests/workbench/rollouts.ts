/** Small session files in the format before Codex 0.150, enough for a row in a list. */

import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface SessionSpec {
  readonly task: string;
  readonly cwd: string;
  /** The commit at which it began. */
  readonly commit?: string;
  /** Minutes since its last record. */
  readonly age?: number;
  /** The steps of its plan, none of them done. */
  readonly plan?: readonly string[];
  /** Its commands. */
  readonly commands?: readonly string[];
  /** The output of each command. */
  readonly output?: string;
  /** The model's final message. */
  readonly answer?: string;
  /** The turns after that. */
  readonly further?: readonly Exchange[];
  /** The tokens in use at the end of its first turn. */
  readonly used?: number;
  /** The context in use, of 258,400 tokens; then its history also has the user's messages. */
  readonly tokens?: number;
  /** The source, for a branch made by us. */
  readonly branchOf?: string;
}

/** A further turn. */
export interface Exchange extends Pick<SessionSpec, "task" | "plan" | "commands" | "answer"> {
  /** The changes of its patch, by path, as Codex records them. */
  readonly changes?: Readonly<Record<string, object>>;
  /** The exit code of its commands. */
  readonly exitCode?: number;
  /** The tokens in use at its end. */
  readonly used?: number;
  /** Whether Codex compacted at its end. */
  readonly compacted?: boolean;
}

/** Write a session, and return its id. */
export function writeSession(codexHome: string, spec: SessionSpec): string {
  const id = randomUUID();
  const time = new Date(Date.now() - (spec.age ?? 1) * 60_000).toISOString();
  const git = spec.commit === undefined ? {} : { git: { commit_hash: spec.commit } };
  const place = { cwd: spec.cwd, cli_version: "0.98.0", ...git };
  const payloads: [string, object][] = [
    ["session_meta", { id, timestamp: time, ...place, source: "cli", ...branched(spec.branchOf) }],
    ["turn_context", { cwd: spec.cwd, model: "gpt-5.2-codex" }],
    ...[spec, ...(spec.further ?? [])].flatMap((turn, number) => [
      ...(spec.tokens === undefined ? [] : said(turn.task)),
      ...exchanged(turn, number, spec.output ?? ""),
    ]),
    ...(spec.tokens === undefined ? [] : filled(spec.tokens)),
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

/** Roll back the last turns of a session, as Codex does when the user edits an earlier message. */
export function rollBack(codexHome: string, id: string, turns: number): void {
  const payload = { type: "thread_rolled_back", num_turns: turns };
  const line = { timestamp: new Date().toISOString(), type: "event_msg", payload };
  appendFileSync(fileOf(codexHome, id), `${JSON.stringify(line)}\n`);
}

/** The file of a session. */
export function fileOf(codexHome: string, id: string): string {
  const root = join(codexHome, "sessions");
  const names = readdirSync(root, { recursive: true, encoding: "utf8" });
  return join(root, names.find((name) => name.endsWith(`${id}.jsonl`)) ?? "");
}

function branched(source: string | undefined): object {
  const ours = { forked_from_id: source, originator: "codex-checkpoints" };
  return source === undefined ? {} : ours;
}

function said(text: string): [string, object][] {
  const content = [{ type: "input_text", text }];
  return [["response_item", { type: "message", role: "user", content }]];
}

function filled(total_tokens: number): [string, object][] {
  const usage = { input_tokens: total_tokens, output_tokens: 0, total_tokens };
  const info = { total_token_usage: usage, last_token_usage: usage, model_context_window: 258_400 };
  return [["event_msg", { type: "token_count", info }]];
}

function exchanged(turn: Exchange, number: number, output: string): [string, object][] {
  const commands = turn.commands ?? [];
  return [
    ["event_msg", { type: "user_message", message: turn.task, images: [] }],
    ...planned(turn.plan ?? [], number),
    ...commands.flatMap((command, index) =>
      ran(command, `${number}_${index}`, output, turn.exitCode ?? 0),
    ),
    ...patched(turn.changes, number),
    ...answered(turn.answer),
    ...(turn.used === undefined ? [] : filled(turn.used)),
    ...(turn.compacted === true ? [compacted(turn.task)] : []),
  ];
}

function planned(steps: readonly string[], number: number): [string, object][] {
  const plan = steps.map((step) => ({ step, status: "pending" }));
  const call_id = `call_plan_${number}`;
  const call = { name: "update_plan", arguments: JSON.stringify({ plan }), call_id };
  return steps.length === 0 ? [] : [["response_item", { type: "function_call", ...call }]];
}

function patched(changes: Exchange["changes"], number: number): [string, object][] {
  const call_id = `call_patch_${number}`;
  const event = { type: "patch_apply_end", call_id, success: true, changes };
  return changes === undefined ? [] : [["event_msg", event]];
}

function answered(text: string | undefined): [string, object][] {
  const content = [{ type: "output_text", text }];
  return text === undefined
    ? []
    : [["response_item", { type: "message", role: "assistant", content }]];
}

function compacted(text: string): [string, object] {
  const content = [{ type: "input_text", text }];
  const replacement_history = [{ type: "message", role: "user", content }];
  return ["compacted", { message: "", replacement_history }];
}

function ran(command: string, id: string, said: string, exit_code: number): [string, object][] {
  const call_id = `call_${id}`;
  const call = { name: "shell", arguments: JSON.stringify({ command: ["bash", "-lc", command] }) };
  const output = JSON.stringify({ output: said, metadata: { exit_code } });
  return [
    ["response_item", { type: "function_call", ...call, call_id }],
    ["response_item", { type: "function_call_output", call_id, output }],
  ];
}
