/** A script of a page holds nothing that an HTML parser obeys. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { inlinable, isObeyed } from "../../extension/inline.mjs";

test("a script between tags means the same, and cannot end its element", () => {
  const script = [
    "const text = '<!-- <script> </SCRIPT>';",
    "const found = [/^<!--/, /<script(?=\\s|>)/u].map((each) => each.test(text.trimStart()));",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a part of the script
    "[text, `${1}</script>`, ...found, /<[a-z]/.test('<b'), 1 < 2];",
  ].join("\n");
  assert.ok(isObeyed(script));
  const safe = inlinable(script);
  assert.ok(!isObeyed(safe));
  assert.deepEqual([...runInNewContext(safe)], [...runInNewContext(script)]);
});

test("a comparison with something named `script` is refused, not changed", () => {
  assert.throws(() => inlinable("var script = 1; 0<script"), /Invalid|Unexpected/);
});
