// Makes a script safe to stand between the tags of a page's `<script>` element.

import { Script } from "node:vm";

/** What an HTML parser obeys inside a script: a comment that hides its end, and the end itself. */
const OBEYED = /<(?=!--|\/?script)/gi;

/**
 * Return a bundled script with `\x3C` for each `<` that an HTML parser would obey.
 *
 * Bundlers write these only into strings, templates and regular expressions, where the escape means
 * the same; anywhere else it is a syntax error, which this throws.
 * @param {string} script
 */
export function inlinable(script) {
  const escaped = script.replace(OBEYED, "\\x3C");
  new Script(escaped);
  return escaped;
}

/**
 * Whether an HTML parser would obey a part of a script.
 * @param {string} script
 */
export function isObeyed(script) {
  return script.search(OBEYED) !== -1;
}
