import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  inEditor,
  REASONS,
  REFUSALS,
  REMEDIES,
  refusalText,
  refusalWords,
} from "../../extension/src/client/model/refusals.ts";

const text = (path: string) => readFileSync(path, "utf8");
const SERVER = "server/codex_checkpoints";
const server = readdirSync(SERVER, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".py"))
  .map((path) => text(join(SERVER, path)));

test("each sentence is of a code of the server", () => {
  const [, union = ""] =
    /export type RefusalCode =\n(.*?);/s.exec(text("extension/src/client/protocol.ts")) ?? [];
  const codes = [...union.matchAll(/"(\w+)"/g)].map(([, code]) => code);

  assert.deepEqual(
    Object.keys(REFUSALS).filter((code) => !codes.includes(code)),
    [],
  );
  for (const [code, { sentence }] of Object.entries({ ...REFUSALS, ...REASONS })) {
    assert.match(sentence, /^[A-Z].*\.$/, code);
  }
});

test("each button is a command of the manifest, or handled by the caller", () => {
  const manifest: { command: string }[] = JSON.parse(text("package.json")).contributes.commands;
  const known = manifest.map(({ command }) => command.replace("codexCheckpoints.", ""));
  for (const { command } of Object.values(REMEDIES)) {
    assert.ok(command === null || known.includes(command), String(command));
  }
});

test("no sentence and no button is about the command line", () => {
  const words = [
    ...Object.values({ ...REFUSALS, ...REASONS }).map(({ sentence }) => sentence),
    ...Object.values(REMEDIES).map(({ label }) => label),
  ];
  for (const each of words) {
    assert.doesNotMatch(each, /`|--\w|codex-checkpoints/);
  }
  const facts = { hint: "Run `codex-checkpoints archive x`, or --force." };
  assert.doesNotMatch(refusalText("item_too_large", facts), /`|--/);
});

test("advice that is not a command line follows a refusal without a button", () => {
  const hint = "Say what holds in the project.";
  assert.match(
    refusalText("policy_text", { hint }),
    /instruction.* Say what holds in the project\.$/,
  );
  assert.doesNotMatch(refusalText("policy_text", { hint: 7 }), /7/);
  assert.doesNotMatch(refusalText("session_live", { hint }), /Say what/);
});

test("an unreadable file is the session's, unless a person named another", () => {
  const file = "/home/dev/shop.pack.json";
  assert.equal(refusalText("unreadable_source", { file }), "This file cannot be read.");
  assert.match(refusalText("unreadable_source", {}), /file of this session/);
});

test("a failing file of ours is named with the reason, and another folder is offered", () => {
  const facts = { path: "/srv/state/sessions", reason: "Read-only file system" };
  const { sentence, remedies } = refusalWords("storage_error", facts);
  assert.equal(sentence, "/srv/state/sessions cannot be read or written: Read-only file system.");
  assert.deepEqual(remedies, ["stateFolder", "again"]);
  assert.deepEqual(refusalWords("storage_error", {}).remedies, ["again", "log"]);
});

test("an archived session is unarchived by a button, and an unknown conflict retried", () => {
  assert.deepEqual(refusalWords("conflict", { reason: "archived" }), {
    sentence: "This session is archived.",
    remedies: ["unarchive"],
  });
  assert.deepEqual(refusalWords("conflict", { reason: "something new" }).remedies, ["again"]);
  assert.match(
    refusalText("blocked_by_hook", { reason: "settings" }),
    /config\.toml cannot be read/,
  );
  assert.match(refusalText("blocked_by_hook", { reason: "no" }), /A hook of yours/);
});

test("a remote's refusal is the server's sentence, with its advice and a retry", () => {
  const facts = { place: "/mnt/sync", hint: "Check that the disk is mounted." };
  assert.deepEqual(
    refusalWords("remote_unreachable", facts, false, "There is no remote in /mnt."),
    {
      sentence: "There is no remote in /mnt. Check that the disk is mounted.",
      remedies: ["again"],
    },
  );
  assert.deepEqual(refusalWords("remote_unreachable", { hint: "Run `x`." }, false, "None."), {
    sentence: "No remote is set on this machine.",
    remedies: ["setRemote"],
  });
});

test("a session with many secrets is redacted only by a page that asks, one with a key never", () => {
  const facts = { kinds: { github: 25, url_password: 1 } };
  assert.deepEqual(refusalWords("secret_text", facts, true), {
    sentence:
      "This session holds too many secrets to push it as it is (github: 25, url password: 1). " +
      "You can have all of them redacted.",
    remedies: ["redacted"],
  });
  assert.deepEqual(refusalWords("secret_text", facts).remedies, []);
  const hint = "A session with a private key is never pushed.";
  assert.deepEqual(refusalWords("secret_text", { kinds: { private_key: 1 }, hint }, true), {
    sentence: `This session holds a private key. ${hint}`,
    remedies: [],
  });
});

test("continuing anyway is offered only where it is possible", () => {
  assert.deepEqual(refusalWords("turn_not_complete", {}).remedies, ["again"]);
  assert.deepEqual(refusalWords("turn_not_complete", {}, true).remedies, ["again", "force"]);
});

test("an unknown code says that the request failed, and where to look", () => {
  assert.deepEqual(refusalWords("brand_new", {}).remedies, ["log"]);
});

test("advice of the server names our commands by their titles", () => {
  const manifest: { title: string }[] = JSON.parse(text("package.json")).contributes.commands;
  const titles = manifest.map(({ title }) => title);
  const advice = server
    .flatMap((source) => [...source.matchAll(/`codex-checkpoints ([a-z]+)[^`\n]*`/g)])
    .map(([whole, verb = ""]) => [verb, inEditor(whole)] as const);
  // Those that are written into a file of Codex, or are only said on the command line.
  const elsewhere = new Set(["restore", "history", "recall", "remote"]);
  for (const [verb, shown] of advice.filter(([each]) => !elsewhere.has(each))) {
    assert.ok(titles.includes(shown.slice(1, -1)), `${verb}: ${shown}`);
  }
  assert.equal(
    inEditor("Name another with --codex-home."),
    "Name another with the setting codexCheckpoints.codexHome.",
  );
});
