/** The real Codex after two turns, and a scripted model for resuming the session. */

import { join } from "node:path";
import type { TestContext } from "node:test";
import { Child } from "./children.ts";
import type { Lab } from "./lab.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PYTHON = join(ROOT, ".venv", "bin", "python");
const PATIENCE_MS = 120_000;

/** The prompts of the two turns, the same as in the driver. */
export const TASK = "Fix the division in calc.";
export const LATER = "Now something else entirely.";
export const SAID = "I would rather divide truly.";

/** A request to the model: the texts of its input, and the number of requests so far. */
export interface Asked {
  readonly calls: number;
  readonly texts: readonly string[];
}

export class CodexToResume {
  readonly session: string;
  /** The environment that a terminal needs, beyond the lab's, to run this Codex. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #child: Child;
  #asked = 0;

  private constructor(child: Child, session: string, lab: Lab) {
    this.#child = child;
    this.session = session;
    const path = `${join(lab.root, "bin")}:${process.env.PATH ?? ""}`;
    this.environment = { PATH: path, SCRIPTED_MODEL_KEY: "no-key" };
  }

  /** Create the home and the project in the lab, and run Codex. */
  static async work(test: TestContext, lab: Lab): Promise<CodexToResume> {
    const program = join(import.meta.dirname, "codex_to_resume.py");
    const child = new Child([PYTHON, program, lab.root], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
    });
    test.after(() => child.end());
    const [, session] = await child.prints(/"worked", "session": "([\w-]+)"/, PATIENCE_MS);
    return new CodexToResume(child, session as string, lab);
  }

  /** Let the model answer this prompt; resolves when it is ready to. */
  async answers(prompt: string): Promise<void> {
    this.#asked += 1;
    this.#child.send(prompt);
    await this.#child.prints(new RegExp(`("answers"[^]*){${this.#asked}}`), PATIENCE_MS);
  }

  /** Return the model's input for the last prompt. */
  async asked(): Promise<Asked> {
    const pattern = new RegExp(`(?:^.*"asked".*$[^]*?){${this.#asked}}`, "m");
    const [all] = await this.#child.prints(pattern, PATIENCE_MS);
    const line = all
      .trim()
      .split("\n")
      .findLast((each) => each.includes('"asked"'));
    return JSON.parse(line ?? "") as Asked;
  }
}
