/** The real Codex after two turns, and a scripted model for resuming the session. */

import { join } from "node:path";
import type { TestContext } from "node:test";
import { Child } from "./children.ts";
import type { Lab } from "./lab.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PYTHON = join(ROOT, ".venv", "bin", "python");
const PATIENCE_MS = 120_000;

/** What was asked for in the two turns, and what the model said in the first: as in the driver. */
export const TASK = "Fix the division in calc.";
export const LATER = "Now something else entirely.";
export const SAID = "I would rather divide truly.";

/** One question to the model: the texts of its input, and how many questions there were. */
export interface Asked {
  readonly calls: number;
  readonly texts: readonly string[];
}

export class CodexToResume {
  readonly session: string;
  /** What a terminal needs beyond the lab to run this Codex. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #child: Child;
  #asked = 0;

  private constructor(child: Child, session: string, lab: Lab) {
    this.#child = child;
    this.session = session;
    const path = `${join(lab.root, "bin")}:${process.env.PATH ?? ""}`;
    this.environment = { PATH: path, SCRIPTED_MODEL_KEY: "no-key" };
  }

  /** Make the home and the project in the lab, and let Codex work. */
  static async work(test: TestContext, lab: Lab): Promise<CodexToResume> {
    const program = join(import.meta.dirname, "codex_to_resume.py");
    const child = new Child([PYTHON, program, lab.root], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
    });
    test.after(() => child.end());
    const [, session] = await child.prints(/"worked", "session": "([\w-]+)"/, PATIENCE_MS);
    return new CodexToResume(child, session as string, lab);
  }

  /** Have the model answer this; back when it can. */
  async answers(prompt: string): Promise<void> {
    this.#asked += 1;
    this.#child.tell(prompt);
    await this.#child.prints(new RegExp(`("answers"[^]*){${this.#asked}}`), PATIENCE_MS);
  }

  /** What the model was asked with, for what it was to answer last. */
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
