import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { SessionDigest } from "../../extension/src/client/protocol.ts";
import { anchorsIn, namesIn } from "../../extension/src/compaction/model/digest.ts";
import { makeHome, Rollout, startServer } from "./server.ts";

const SESSION = "01a1f865-38d8-70b2-8c7e-c01cbfd01af1";

test("the anchor in front of a line is a link, and nothing else is", () => {
  const text = [
    "- #1 before the digest",
    "[SESSION_DIGEST v1]",
    "",
    "[STATUS]",
    "- last turn: answered, see #7",
    "",
    "[REQUESTS]",
    "- t3 #120 as in #9",
    "- #4 an earlier session",
    "-  #5 not in front",
    "- t3 #6",
  ].join("\n");

  assert.deepEqual(anchorsIn(text), [
    { line: 7, from: 5, to: 9, ref: "#120" },
    { line: 8, from: 2, to: 4, ref: "#4" },
  ]);
  assert.deepEqual(anchorsIn("- #1 no digest at all"), []);
});

test("each level adds names, and an invalid one affects no other", () => {
  const long = "x".repeat(129);
  assert.deepEqual(namesIn([["*.pem", "a"], undefined, ["a", 7, "", long, "b"], "c", { d: "e" }]), [
    "*.pem",
    "a",
    "b",
  ]);
});

test("the server quotes a session with anchors that it can recall, but no ignored file", async (t) => {
  const home = await makeHome();
  t.after(() => home.remove());
  await writeFile(join(home.project, "auth.py"), "token = None\n");
  const session = await new Rollout(home, SESSION).begin(home.project);
  await session.says("Fix the login");
  const said = [{ type: "output_text", text: "The token was never read." }];
  await session.add("response_item", { type: "message", role: "assistant", content: said });
  for (const name of ["auth.py", "vault.txt"]) {
    const id = `call_${name}`;
    const command = { command: ["bash", "-lc", `sed -i s/1/2/ ${name} && make check`] };
    const call = { type: "function_call", name: "shell", call_id: id };
    await session.add("response_item", { ...call, arguments: JSON.stringify(command) });
    const output = JSON.stringify({ output: `E ${name}:7 wrong`, metadata: { exit_code: 2 } });
    await session.add("response_item", { type: "function_call_output", call_id: id, output });
  }
  const settings = { digestIgnore: ["vault.*"], digestTokens: 2000 };
  const server = await startServer(home, settings);

  const asked = { sessionId: SESSION, turnId: null, tokens: null };
  const found: SessionDigest = await server.request("digest", asked);
  assert.equal(found.budget, 2000);
  assert.match(found.text, /The token was never read/);
  assert.match(found.text, /auth\.py:7 wrong/);
  assert.doesNotMatch(found.text, /vault/);

  const anchors = anchorsIn(found.text);
  assert.ok(anchors.length >= 3, found.text);
  const texts = await Promise.all(
    anchors.map(async ({ ref }) => {
      const wanted = { sessionId: SESSION, ref, query: null, offset: 0, near: null, limit: 1 };
      return (await server.request("recall", wanted)).record?.text ?? "";
    }),
  );
  assert.ok(texts.includes("Fix the login"), `${texts}`);
  assert.ok(texts.every((text) => text !== ""));
});
