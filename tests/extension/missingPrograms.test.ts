import assert from "node:assert/strict";
import { test } from "node:test";
import { codexMissing, howToInstallPython } from "../../extension/src/client/model/interpreters.ts";

test("a missing Codex names the setting that was used", () => {
  assert.equal(
    codexMissing("", undefined),
    "Codex was not found on the PATH. The setting codexCheckpoints.codexPath is not set.",
  );
  assert.match(codexMissing("", "ssh-remote"), /on the PATH on ssh-remote\. .* that machine count/);
  assert.match(codexMissing("/opt/codex", undefined), /names \/opt\/codex, which is not there\.$/);
});

test("each system has a command that installs Python", () => {
  for (const platform of ["win32", "darwin", "linux"] as const) {
    assert.match(howToInstallPython(platform).command, /^(winget|brew|sudo apt) install /);
  }
});
