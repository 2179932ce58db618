/** Texts about digests and the records that they quote. */

const FIRST_LINE = "[SESSION_DIGEST v1]";

/** An anchor in a document: its line and columns, and the reference for `checkpoints/recall`. */
export interface Anchor {
  readonly line: number;
  readonly from: number;
  readonly to: number;
  readonly ref: string;
}

/** The anchors of the lines below the first line of a digest. */
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

/** The names of files that any level of the settings adds; what the server would refuse is not in. */
export function namesIn(levels: readonly unknown[]): readonly string[] {
  const names = levels.flatMap((level) => (Array.isArray(level) ? level : []));
  const fits = (name: unknown): name is string =>
    typeof name === "string" && name !== "" && name.length <= LONGEST_NAME;
  return [...new Set(names.filter(fits))];
}
