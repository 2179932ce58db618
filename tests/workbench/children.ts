/** Child processes in groups of their own; none outlives the test run. */

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const GRACE_MS = 5_000;
const running = new Set<number>();

process.on("exit", () => {
  for (const group of running) {
    signal(group, "SIGKILL");
  }
});
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => process.exit(1));
}

export class Child {
  readonly process: ChildProcess;
  /** All output so far. */
  output = "";
  readonly #ended: Promise<unknown>;
  readonly #listeners = new Set<() => void>();

  constructor(command: readonly string[], options: SpawnOptions) {
    const [program, ...args] = command;
    this.process = spawn(program as string, args, {
      stdio: ["pipe", "pipe", "pipe"],
      ...options,
      detached: true,
    });
    this.#ended = once(this.process, "exit").then(() => this.#tell());
    running.add(this.process.pid as number);
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
        this.#tell();
      });
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }

  /** Wait until the output matches a pattern, and return the match. */
  async prints(pattern: RegExp, withinMs: number): Promise<RegExpMatchArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpMatchArray>();
    const complain = () => reject(new Error(`it never printed ${pattern}:\n${this.output}`));
    const look = () => {
      const match = this.output.match(pattern);
      if (match) {
        resolve(match);
      } else if (this.process.exitCode !== null) {
        complain();
      }
    };
    const timer = setTimeout(complain, withinMs);
    this.#listeners.add(look);
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(look);
    }
  }

  /** Send a line to its standard input. */
  send(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }

  /** Wait for its exit, and return the exit code. */
  async ends(withinMs: number): Promise<number | null> {
    await Promise.race([this.#ended, sleep(withinMs, undefined, { ref: false })]);
    return this.process.exitCode;
  }

  /** Kill it and its process group. */
  async end(): Promise<void> {
    const group = this.process.pid as number;
    signal(group, "SIGTERM");
    await this.ends(GRACE_MS);
    signal(group, "SIGKILL");
    await this.#ended;
    running.delete(group);
  }
}

function signal(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name);
  } catch {
    // The process has already ended.
  }
}
