/** A throw-away machine: a home, a project, a CODEX_HOME, and an environment full of traps. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { becomes } from "./waiting.ts";

const CLI = join(import.meta.dirname, "..", "..", ".venv", "bin", "codex-checkpoints");

export class Lab {
  // Short: a unix socket lies in it, and its path may have 107 bytes.
  readonly root = mkdtempSync(join(tmpdir(), "wb-"));
  /** The four that the driver of the real Codex uses as well (`CodexHome`). */
  readonly codexHome = join(this.root, "codex_home");
  readonly project = join(this.root, "project");
  readonly user = join(this.root, "user");
  readonly temp = join(this.root, "temp");
  /** The workbench's own. */
  readonly userData = join(this.root, "ud");
  readonly extensions = join(this.root, "ex");
  readonly profile = join(this.root, "browser");
  readonly trap = join(this.root, "trap");
  static #shared: Lab | undefined;

  /** The one that the tests of a process have after each other, each as if it were new. */
  static shared(): Lab {
    Lab.#shared ??= new Lab();
    return Lab.#shared;
  }

  get isShared(): boolean {
    return this === Lab.#shared;
  }

  /** Make the folders; the real Codex's driver makes those that it shares by itself. */
  constructor(options: { forCodex?: boolean } = {}) {
    const shared = [this.codexHome, this.project, this.user, this.temp];
    const own = [this.userData, this.extensions, this.profile, this.trap];
    for (const folder of options.forCodex ? own : [...shared, ...own]) {
      mkdirSync(folder, { recursive: true });
    }
    // Whoever takes modules from the user's PYTHONPATH ends here.
    for (const module of ["sitecustomize", "attrs", "cattrs", "orjson", "pygls", "watchdog"]) {
      writeFileSync(join(this.trap, `${module}.py`), "raise SystemExit('taken from PYTHONPATH')\n");
    }
  }

  /** Put a file into the project. */
  write(name: string, text: string, mode = 0o644): string {
    return this.writeIn(this.project, name, text, mode);
  }

  writeIn(folder: string, name: string, text: string, mode = 0o644): string {
    const path = join(folder, name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, text, { mode });
    return path;
  }

  /** What the workbench and all that it starts see: of the outside, the PATH alone. */
  environment(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "",
      HOME: this.user,
      LANG: "C.UTF-8",
      SHELL: "/bin/sh",
      TMPDIR: this.temp,
      CODEX_HOME: this.codexHome,
      PYTHONPATH: this.trap,
      PYTHONNOUSERSITE: "",
      EXTENSIONS_GALLERY: "{}",
      VSCODE_CLI: "1", // else a login shell is asked for another PATH
    };
  }

  /** Run our own command line in it; what it answers. */
  run(...args: readonly string[]) {
    return JSON.parse(this.print(...args, "--json"));
  }

  /** Run our own command line in it; what it prints for a person. */
  print(...args: readonly string[]): string {
    const { PYTHONPATH: _, ...env } = this.environment();
    return execFileSync(CLI, args, { env, cwd: this.project, encoding: "utf8" });
  }

  /** The process of the extension's server, once there is one and no more; or none. */
  async server(count: 0 | 1 = 1): Promise<number> {
    await becomes(() => this.servers().length, count); // the one before may still be ending
    return this.servers()[0] ?? Number.NaN;
  }

  /** All processes of the extension's server. */
  servers(): readonly number[] {
    return execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(this.extensions) && line.endsWith("launch.py serve"))
      .map((line) => Number.parseInt(line, 10));
  }

  /** Take away what a test has put there, and what the workbench remembers. */
  empty(): void {
    for (const folder of [this.codexHome, this.project, this.user, join(this.userData, "User")]) {
      remove(folder);
      mkdirSync(folder);
    }
  }

  remove(): void {
    remove(this.root);
    Lab.#shared = this.isShared ? undefined : Lab.#shared;
  }
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
