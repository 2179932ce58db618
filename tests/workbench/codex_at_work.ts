/** The real Codex CLI at work in a lab; its scripted model pauses between steps. */

import { join } from "node:path";
import type { TestContext } from "node:test";
import { Child } from "./children.ts";
import type { Lab } from "./lab.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PYTHON = join(ROOT, ".venv", "bin", "python");
const PATIENCE_MS = 120_000;

/** Codex's prompt and its plan, the same as in `tests/codex`. */
export const TASK = "Fix the division in calc.";
export const STEPS = ["Read the module", "Fix the division", "Count the lines"];

export class CodexAtWork {
  readonly #child: Child;
  #released = 0;

  private constructor(child: Child) {
    this.#child = child;
  }

  /** Create the home and the project in the lab; `begin` starts Codex. */
  static async prepare(test: TestContext, lab: Lab): Promise<CodexAtWork> {
    const program = join(import.meta.dirname, "codex_at_work.py");
    const child = new Child([PYTHON, program, lab.root], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
    });
    test.after(() => child.end());
    await child.prints(/"ready"/, PATIENCE_MS);
    return new CodexAtWork(child);
  }

  /** Start Codex; resolves at its first request to the model. */
  async begin(): Promise<void> {
    this.#child.send("begin");
    await this.#waits();
  }

  /** Release the next answer; resolves when Codex has handled it and makes the next request. */
  async nextStep(): Promise<void> {
    this.#released += 1;
    this.#child.send("go on");
    await this.#waits();
  }

  /** Release the last answer; resolves when Codex has exited. */
  async end(): Promise<void> {
    this.#child.send("go on");
    await this.#child.prints(/"done"/, PATIENCE_MS);
  }

  async #waits(): Promise<void> {
    const step = this.#released + 1;
    await this.#child.prints(new RegExp(`"waits", "step": ${step}\\b`), PATIENCE_MS);
  }
}
