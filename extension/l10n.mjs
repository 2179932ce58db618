// Gathers what the source says to people into l10n/bundle.l10n.json, for translators:
// `node extension/l10n.mjs` writes it, and a test compares.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const BUNDLE = "l10n/bundle.l10n.json";

/** The strings handed to `l10n.t` or to a `say`, in order of the alphabet. */
export function spoken() {
  const found = new Set();
  for (const entry of readdirSync("extension/src", { recursive: true, encoding: "utf8" })) {
    if (entry.endsWith(".ts")) {
      const source = readFileSync(join("extension/src", entry), "utf8");
      for (const [, text] of source.matchAll(/\b(?:l10n\s*\.t|say)\(\s*("(?:[^"\\]|\\.)*")/g)) {
        found.add(JSON.parse(text ?? ""));
      }
    }
  }
  return [...found].sort();
}

/** The file as it should be. */
export function bundle() {
  const entries = Object.fromEntries(spoken().map((text) => [text, text]));
  return `${JSON.stringify(entries, null, 2)}\n`;
}

if (process.argv[1]?.endsWith("l10n.mjs")) {
  writeFileSync(BUNDLE, bundle());
}
