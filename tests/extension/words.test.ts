/** The server makes every sentence about data; previews and their notices have none of their own. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const SOURCE = "extension/src";
const CONTROLS = "common/model/controls.ts";

/** The scripts of the pages that the rule is about, their models, and the commands of packs. */
const FILES = [
  ...["preview", "compaction", "push", "files", "sections", "quotes"].map(
    (name) => `webview/${name}.ts`,
  ),
  ...["compaction/model", "restore/model", "packs/model"].flatMap((folder) =>
    readdirSync(join(SOURCE, folder)).map((name) => `${folder}/${name}`),
  ),
  ...["team/model/preview.ts", "packs/commands.ts"],
];

/** The results of sliders, for which no server can be asked while one drags, and of a push. */
const EXEMPT = ["cutText", "budgetText", "pushedWords"];

interface Text {
  readonly text: string;
  /** The name of the top-level function around it, else empty. */
  readonly within: string;
  readonly isConstant: boolean;
}

const COMMENT = /^ *(?:\/\*[\s\S]*?\*\/|\/\/.*)$/gm;
const FUNCTION = /^(?:export )?function (\w+)/gm;
const LITERAL = /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

/** All texts in a file, with `…` in place of values. */
function textsIn(file: string): readonly Text[] {
  const code = readFileSync(join(SOURCE, file), "utf8").replace(COMMENT, "");
  const functions = [...code.matchAll(FUNCTION)];
  return [...code.matchAll(LITERAL)].map(({ 0: literal, index }) => ({
    text: literal.slice(1, -1).replace(/\$\{[^}]*\}/g, "…"),
    within: functions.findLast((each) => each.index < index)?.[1] ?? "",
    isConstant: !literal.includes("${"),
  }));
}

/** Several words that end with a full stop. */
const isSentence = ({ text }: Text) => /\S+ .*[\p{L}\d…)][.!?](?:\s|$)/su.test(text);

for (const file of FILES) {
  test(`no sentence about data in ${file}`, () => {
    const own = textsIn(file).filter(({ within }) => !EXEMPT.includes(within));
    assert.deepEqual(own.filter(isSentence), []);
  });
}

test("sentences about controls are constants, without data in them", () => {
  const texts = textsIn(CONTROLS);
  assert.ok(texts.filter(isSentence).length > 0);
  assert.deepEqual(
    texts.filter(({ isConstant }) => !isConstant),
    [],
  );
});
