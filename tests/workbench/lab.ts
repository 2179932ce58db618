/** A throw-away machine: a home, a project, a CODEX_HOME, and an environment with traps. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { becomes } from "./waiting.ts";

const CLI = join(import.meta.dirname, "..", "..", ".venv", "bin", "codex-checkpoints");

export class Lab {
  // Short: a Unix socket is created in it, and its path is limited to 107 bytes.
  readonly root = mkdtempSync(join(tmpdir(), "wb-"));
  /** These four are also used by the driver of the real Codex (`CodexHome`). */
  readonly codexHome = join(this.root, "codex_home");
  readonly project = join(this.root, "project");
  readonly user = join(this.root, "user");
  readonly temp = join(this.root, "temp");
  /** Folders of the workbench. */
  readonly userData = join(this.root, "ud");
  readonly extensions = join(this.root, "ex");
  readonly profile = join(this.root, "browser");
  readonly trap = join(this.root, "trap");
  static #shared: Lab | undefined;

  /** A lab that the tests of a process reuse one after the other, each as if it were new. */
  static shared(): Lab {
    Lab.#shared ??= new Lab();
    return Lab.#shared;
  }

  get isShared(): boolean {
    return this === Lab.#shared;
  }

  /** Create the folders; the real Codex's driver creates the ones that it shares. */
  constructor(options: { forCodex?: boolean } = {}) {
    const shared = [this.codexHome, this.project, this.user, this.temp];
    const own = [this.userData, this.extensions, this.profile, this.trap];
    for (const folder of options.forCodex ? own : [...shared, ...own]) {
      mkdirSync(folder, { recursive: true });
    }
    // Importing modules from the user's PYTHONPATH fails here.
    for (const module of ["sitecustomize", "attrs", "cattrs", "orjson", "pygls", "watchdog"]) {
      writeFileSync(join(this.trap, `${module}.py`), "raise SystemExit('taken from PYTHONPATH')\n");
    }
  }

  /** Write a file of the project. */
  write(name: string, text: string, mode = 0o644): string {
    return this.writeIn(this.project, name, text, mode);
  }

  writeIn(folder: string, name: string, text: string, mode = 0o644): string {
    const path = join(folder, name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, text, { mode });
    return path;
  }

  /** The environment of the workbench and its children; only the PATH comes from outside. */
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
      VSCODE_CLI: "1", // otherwise VS Code asks a login shell for the PATH
    };
  }

  /** Run our command line in the lab, and parse its JSON output. */
  run(...args: readonly string[]) {
    return JSON.parse(this.print(...args, "--json"));
  }

  /** Run our command line in the lab, and return its output for people. */
  print(...args: readonly string[]): string {
    const { PYTHONPATH: _, ...env } = this.environment();
    return execFileSync(CLI, args, { env, cwd: this.project, encoding: "utf8" });
  }

  /** Wait for exactly one server process of the extension, or for none. */
  async server(count: 0 | 1 = 1): Promise<number> {
    await becomes(() => this.servers().length, count); // the previous one may still be exiting
    return this.servers()[0] ?? Number.NaN;
  }

  /** Return all server processes of the extension. */
  servers(): readonly number[] {
    return execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(this.extensions) && line.endsWith("launch.py serve"))
      .map((line) => Number.parseInt(line, 10));
  }

  /** Remove a test's files, and the workbench's stored state. */
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
