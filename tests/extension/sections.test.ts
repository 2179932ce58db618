import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { PagePart, ShownPage } from "../../extension/src/client/protocol.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import {
  COMMANDS,
  labelOf,
  readTarget,
  SETTINGS,
  tabTitle,
} from "../../extension/src/common/model/sections.ts";

const text = (path: string) => readFileSync(path, "utf8");
const MODEL = text("server/codex_checkpoints/sections/model.py");

/** Return the quoted words of a constant in the server's source. */
function namesIn(constant: string): string[] {
  const [, found = ""] = new RegExp(`\\n${constant} = [({](.*?)[)}]\\n`, "s").exec(MODEL) ?? [];
  return [...found.matchAll(/"([\w-]+)"/g)].map(([, name = ""]) => name);
}

test("the commands that a page may name are the server's, each a command of the manifest", () => {
  const manifest: { command: string }[] = JSON.parse(text("package.json")).contributes.commands;
  const known = manifest.map(({ command }) => command.replace("codexCheckpoints.", ""));

  assert.deepEqual(
    Object.keys(COMMANDS).sort(),
    [...namesIn("COMMANDS"), ...namesIn("ACTIONS")].sort(),
  );
  for (const { command } of Object.values(COMMANDS)) {
    assert.ok(known.includes(command), command);
  }
});

test("the settings that a page may name are in the manifest", () => {
  const { configuration } = JSON.parse(text("package.json")).contributes;
  const known = JSON.stringify(configuration);

  assert.deepEqual(
    SETTINGS,
    namesIn("SETTINGS").filter((name) => !name.startsWith("-")),
  );
  for (const name of SETTINGS) {
    assert.ok(known.includes(`"codexCheckpoints.${name}"`), name);
  }
});

test("a page opens nothing but a target of the closed list", () => {
  const link = { kind: "record", name: "#12", sessionId: "s" };
  assert.deepEqual(readTarget(link), link);
  assert.deepEqual(readTarget({ ...link, more: 1 }), link);
  for (const wrong of [
    null,
    "record",
    { ...link, kind: "uri" },
    { ...link, name: 12 },
    { ...link, sessionId: undefined },
    { kind: "command", name: "workbench.action.quit", sessionId: null },
    { kind: "command", name: "toString", sessionId: null },
    { kind: "setting", name: "terminal.integrated.env", sessionId: null },
  ]) {
    assert.equal(readTarget(wrong), null, JSON.stringify(wrong));
  }
  assert.equal(fromPage({ kind: "target", target: { kind: "uri" } }), null);
  assert.deepEqual(fromPage({ kind: "target", target: link }), { kind: "target", target: link });
});

test("only commands and settings go by a label of the editor", () => {
  const label = (kind: string, name: string) => labelOf({ kind, name, sessionId: null });

  assert.equal(label("command", "doctor"), "Open Doctor Report");
  assert.equal(label("setting", "codexHome"), "codexCheckpoints.codexHome");
  assert.equal(label("file", "doctor"), null);
  assert.equal(label("command", "unknown"), null);
});

test("a tab has the title of its page and the name of its session", () => {
  const part = (words: string, kind: string | null): PagePart => ({
    ...{ text: words, form: "text", state: null },
    link: kind === null ? null : { kind, name: "s", sessionId: null },
  });
  const page = (name: PagePart): ShownPage => ({
    ...{ title: "Digest", sections: [], actions: [], text: "", sessionIds: [] },
    about: [{ parts: [part("Session ", null), name] }],
  });

  assert.equal(tabTitle(page(part("Fix\nit", "session"))), "Digest · Fix it");
  assert.equal(tabTitle(page(part("turn 1", "turn"))), "Digest");
});
