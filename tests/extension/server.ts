/** The real server, started from this checkout, and a small home for it. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import {
  createMessageConnection,
  type MessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { Answer, Asked, Method } from "../../extension/src/client/client.ts";
import type { InitializationOptions } from "../../extension/src/client/protocol.ts";

const PYTHON = [".venv/bin/python", ".venv/Scripts/python.exe"]
  .map((path) => resolve(path))
  .find((path) => existsSync(path));

/** A folder with a Codex home and a project, and the servers running in it. */
export interface Home {
  readonly codexHome: string;
  readonly project: string;
  readonly servers: RunningServer[];
  /** Stop the servers, then remove the folder: a running server may write into it. */
  remove(): Promise<void>;
}

/** Make an empty home. */
export async function makeHome(): Promise<Home> {
  const folder = await mkdtemp(join(tmpdir(), "checkpoints-"));
  const [codexHome, project] = [join(folder, "codex"), join(folder, "project")];
  await mkdir(join(codexHome, "sessions"), { recursive: true });
  await mkdir(project);
  const servers: RunningServer[] = [];
  const remove = async () => {
    await Promise.all(servers.map((each) => each.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  return { codexHome, project, servers, remove };
}

/** A session file: its first records, then the appended ones. */
export class Rollout {
  readonly id: string;
  readonly path: string;
  #at = Date.parse("2026-11-20T09:00:00.000Z");

  constructor(home: Home, id: string) {
    this.id = id;
    const name = `rollout-2026-11-20T09-00-00-${id}.jsonl`;
    this.path = join(home.codexHome, "sessions", "2026", "11", "20", name);
  }

  /** Start the file as Codex does. */
  async begin(cwd: string, parent: string | null = null): Promise<this> {
    await mkdir(dirname(this.path), { recursive: true });
    const source =
      parent === null
        ? "cli"
        : { subagent: { thread_spawn: { parent_thread_id: parent, depth: 1 } } };
    await this.add("session_meta", {
      id: this.id,
      timestamp: "2026-11-20T09:00:00.000Z",
      cwd,
      originator: "codex_cli_rs",
      cli_version: "0.169.0",
      source,
    });
    return this;
  }

  /** Append a user message. */
  async says(message: string): Promise<this> {
    const content = [{ type: "input_text", text: message }];
    await this.add("response_item", { type: "message", role: "user", content });
    await this.add("event_msg", { type: "user_message", message, kind: "plain" });
    return this;
  }

  /** Append a command that reads a file. */
  async reads(file: string): Promise<this> {
    const id = `call_${file}`;
    const args = JSON.stringify({ command: ["cat", file] });
    await this.add("response_item", {
      type: "function_call",
      name: "shell",
      arguments: args,
      call_id: id,
    });
    const output = JSON.stringify({ output: "x", metadata: { exit_code: 0 } });
    await this.add("response_item", { type: "function_call_output", call_id: id, output });
    return this;
  }

  async add(type: string, payload: unknown): Promise<void> {
    this.#at += 1000;
    const timestamp = new Date(this.#at).toISOString();
    const line = `${JSON.stringify({ timestamp, type, payload })}\n`;
    await writeFile(this.path, line, { flag: "a" });
  }
}

/** A running server. */
export interface RunningServer {
  readonly connection: MessageConnection;
  readonly process: ChildProcess;
  request<M extends Method>(method: M, params: Asked<M>): Promise<Answer<M>>;
  stop(): Promise<void>;
}

/** Start the server as the extension does, and initialize it; it stops with its home. */
export async function startServer(home: Home, settings = {}): Promise<RunningServer> {
  if (PYTHON === undefined) {
    throw new Error("there is no .venv; make setup");
  }
  const environment = { ...process.env, PYTHONPATH: resolve("server"), HOME: home.project };
  const args = ["-X", "utf8", "-u", "-m", "codex_checkpoints", "serve"];
  const child = spawn(PYTHON, args, { env: environment, stdio: ["pipe", "pipe", "inherit"] });
  const connection = createMessageConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin),
  );
  connection.listen();
  const stop = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
    await ended;
    connection.dispose();
  };
  const request = <M extends Method>(method: M, params: Asked<M>): Promise<Answer<M>> =>
    connection.sendRequest(`checkpoints/${method}`, params);
  const server = { connection, process: child, request, stop };
  home.servers.push(server);
  const initializationOptions: InitializationOptions = {
    codexHome: home.codexHome,
    stateDir: null,
    settings,
  };
  const capabilities = {};
  const hello = { processId: process.pid, rootUri: null, capabilities, initializationOptions };
  await connection.sendRequest("initialize", hello);
  await connection.sendNotification("initialized", {});
  return server;
}
