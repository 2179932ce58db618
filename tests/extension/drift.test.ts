import assert from "node:assert/strict";
import { test } from "node:test";
import { Drift } from "../../extension/src/model/status.ts";

const strayed = (sessionId: string, ...uris: string[]) => ({ sessionId, uris, seq: 1 });

test("a session is warned of once, until somebody answers", () => {
  const drift = new Drift();

  assert.equal(drift.add(strayed("a", "docs/one.md")), true);
  assert.equal(drift.add(strayed("a", "docs/two.md", "docs/one.md")), false);
  assert.equal(drift.add(strayed("b", "LICENSE")), true);
  assert.deepEqual(
    drift.take("a").map(({ uri }) => uri),
    ["docs/one.md", "docs/two.md"],
  );
  assert.equal(drift.add(strayed("a", "docs/three.md")), true);
  assert.deepEqual(
    drift.take("a").map(({ uri }) => uri),
    ["docs/three.md"],
  );
});

test("a name that came from a rollout is one line without anything to obey", () => {
  const drift = new Drift();
  drift.add(strayed("a", "docs/\u001b[31m\u202edm.exe"));

  assert.deepEqual(drift.take("a"), [
    { uri: "docs/\u001b[31m\u202edm.exe", label: "docs/ [31m dm.exe" },
  ]);
});
