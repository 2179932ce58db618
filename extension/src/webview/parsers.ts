/**
 * The second script of a session's page: the parsers of Markdown and code, five times as long as
 * the first script. `loaded.ts` runs it.
 */

export { readMarkdown, readTyped } from "../page/model/markdown.ts";
export { languages } from "./languages.ts";
