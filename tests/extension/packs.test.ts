import assert from "node:assert/strict";
import { test } from "node:test";
import { packName } from "../../extension/src/packs/model/texts.ts";
import { session } from "./values.ts";

test("a pack is named after its session, without path syntax or an ellipsis", () => {
  const name = packName(
    session({ named: true, title: "../../etc/passwd: the shop of all suppliers" }),
  );

  assert.match(name, /\.pack\.json$/);
  assert.ok(!/[/\\:…]/.test(name), name);
});
