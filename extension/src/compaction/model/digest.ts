/** Texts about digests and their anchors. */

const FIRST_LINE = "[SESSION_DIGEST v1]";

/** An anchor in a document: its line, its columns, and the reference for `checkpoints/recall`. */
export interface Anchor {
  readonly line: number;
  readonly from: number;
  readonly to: number;
  readonly ref: string;
}

/** Find the anchors in a digest, except in its first line. */
export function anchorsIn(text: string): Anchor[] {
  const lines = text.split("\n");
  const start = lines.indexOf(FIRST_LINE);
  return lines.flatMap((content, line) => {
    const [head = "", ref] = /^- (?:t\d+ )?(#\d+)(?= )/.exec(content) ?? [];
    const isAnchor = start >= 0 && line > start && ref !== undefined;
    return isAnchor ? [{ line, from: head.length - ref.length, to: head.length, ref }] : [];
  });
}

const LONGEST_NAME = 128;

/**
 * Merge the file names from all levels of the settings, without those that the server would refuse.
 */
export function namesIn(levels: readonly unknown[]): readonly string[] {
  const names = levels.flatMap((level) => (Array.isArray(level) ? level : []));
  const fits = (name: unknown): name is string =>
    typeof name === "string" && name !== "" && name.length <= LONGEST_NAME;
  return [...new Set(names.filter(fits))];
}
