import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  FAILED,
  inEditor,
  REASONS,
  REFUSALS,
  REMEDIES,
  refusalWords,
} from "../../extension/src/client/model/refusals.ts";

const text = (path: string) => readFileSync(path, "utf8");
const SERVER = "server/codex_checkpoints";
const server = readdirSync(SERVER, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".py"))
  .map((path) => text(join(SERVER, path)));
const SAID = "This session is archived.";

test("each button is for a code of the server", () => {
  const [, union = ""] =
    /export type RefusalCode =\n(.*?);/s.exec(text("extension/src/client/protocol.ts")) ?? [];
  const codes = [...union.matchAll(/"(\w+)"/g)].map(([, code]) => code);

  assert.ok(codes.length > 30);
  assert.deepEqual(
    Object.keys(REFUSALS).filter((code) => !codes.includes(code)),
    [],
  );
});

test("each button is a command of the manifest, or done by who asked", () => {
  const manifest: { command: string }[] = JSON.parse(text("package.json")).contributes.commands;
  const known = manifest.map(({ command }) => command.replace("codexCheckpoints.", ""));
  for (const { command } of Object.values(REMEDIES)) {
    assert.ok(command === null || known.includes(command), String(command));
  }
});

test("the sentence of each refusal is the server's, word for word", () => {
  for (const [code, reasons] of [
    ...Object.keys(REFUSALS).map((code) => [code, [""]] as const),
    ["conflict", Object.keys(REASONS)] as const,
    ["a_later_code", [""]] as const,
  ]) {
    for (const reason of reasons) {
      assert.equal(refusalWords(code, SAID, { reason }).sentence, SAID);
    }
  }
});

test("a sentence of the server stays one line of text", () => {
  const { sentence } = refusalWords("conflict", "a\u202eb\n\u001b[2J", {});
  assert.doesNotMatch(sentence, /\p{Cc}|\p{Bidi_Control}/u);
});

test("advice follows a refusal without a button, and one of an open turn; a command line does not", () => {
  const hint = "Say what holds in the project.";
  const words = (code: string, advice: unknown) =>
    refusalWords(code, SAID, { hint: advice }).sentence;

  assert.equal(words("policy_text", hint), `${SAID} ${hint}`);
  assert.equal(words("policy_text", 7), SAID);
  assert.equal(words("turn_not_complete", hint), `${SAID} ${hint}`);
  assert.equal(words("session_live", hint), SAID);
  assert.equal(words("item_too_large", "Run `codex-checkpoints archive x`, or --force."), SAID);
});

test("the button fits the reason", () => {
  const remedies = (code: string, facts: Readonly<Record<string, unknown>> = {}, force = false) =>
    refusalWords(code, SAID, facts, force).remedies;

  assert.deepEqual(remedies("unreadable_source"), ["doctor"]);
  assert.deepEqual(remedies("unreadable_source", { file: "/home/dev/shop.pack.json" }), []);
  assert.deepEqual(remedies("storage_error", { path: "/srv" }), ["stateFolder", "again"]);
  assert.deepEqual(remedies("storage_error"), ["again", "log"]);
  assert.deepEqual(remedies("missing_context", { folder: "/home/dev/shop" }), ["changes"]);
  assert.deepEqual(remedies("missing_context", { sessionId: "a" }), []);
  assert.deepEqual(remedies("codex_not_found", { codexHome: "/h" }), ["home"]);
  assert.deepEqual(remedies("conflict", { reason: "archived" }), ["unarchive"]);
  assert.deepEqual(remedies("conflict", { reason: "something new" }), ["again"]);
  assert.deepEqual(remedies("blocked_by_hook", { reason: "settings" }), ["doctor"]);
  assert.deepEqual(remedies("turn_not_complete"), ["again"]);
  assert.deepEqual(remedies("turn_not_complete", {}, true), ["again", "force"]);
});

test("a remote's refusal has its advice and another try, or a place to choose", () => {
  const facts = { place: "/mnt/sync", hint: "Check that the disk is mounted." };
  assert.deepEqual(refusalWords("remote_unreachable", "There is no remote in /mnt.", facts), {
    sentence: "There is no remote in /mnt. Check that the disk is mounted.",
    remedies: ["again"],
  });
  assert.deepEqual(refusalWords("remote_unreachable", SAID, { hint: "Run `x`." }), {
    sentence: SAID,
    remedies: ["setRemote"],
  });
});

test("a session with many secrets is redacted only by a page that asks, one with a key never", () => {
  const facts = { kinds: { github: 25, url_password: 1 } };
  assert.deepEqual(refusalWords("secret_text", SAID, facts, true).remedies, ["redacted"]);
  assert.deepEqual(refusalWords("secret_text", SAID, facts).remedies, []);
  const hint = "A session with a private key is never pushed.";
  assert.deepEqual(refusalWords("secret_text", SAID, { kinds: { private_key: 1 }, hint }, true), {
    sentence: `${SAID} ${hint}`,
    remedies: [],
  });
});

test("a failure that is no refusal says where to look", () => {
  assert.deepEqual(FAILED.remedies, ["log"]);
});

test("advice of the server names our commands by their titles", () => {
  const manifest: { title: string }[] = JSON.parse(text("package.json")).contributes.commands;
  const titles = manifest.map(({ title }) => title);
  const advice = server
    .flatMap((source) => [...source.matchAll(/`codex-checkpoints ([a-z]+)[^`\n]*`/g)])
    .map(([whole, verb = ""]) => [verb, inEditor(whole)] as const);
  // Refusals that go into a Codex file, or appear on the command line only.
  const elsewhere = new Set(["restore", "history", "recall", "remote"]);
  for (const [verb, shown] of advice.filter(([each]) => !elsewhere.has(each))) {
    assert.ok(titles.includes(shown.slice(1, -1)), `${verb}: ${shown}`);
  }
  assert.equal(
    inEditor("Name another with --codex-home."),
    "Name another with the setting codexCheckpoints.codexHome.",
  );
});
