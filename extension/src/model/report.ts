/** What a page of details is made of: sections, each with a title and a simple body. */

/** One thing to show; a string is plain text. */
export type Value =
  | string
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "time"; readonly stamp: string }
  /** A session to go to; one that is gone is only named. */
  | {
      readonly kind: "session";
      readonly id: string;
      readonly name: string;
      readonly there: boolean;
    };

export type Body =
  | { readonly kind: "facts"; readonly rows: readonly (readonly [string, Value])[] }
  | {
      readonly kind: "table";
      readonly head: readonly string[];
      readonly rows: readonly (readonly Value[])[];
    }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "sentence"; readonly text: string };

export interface Section {
  /** Stays the same in every language: what a person opened stays open. */
  readonly id: string;
  readonly title: string;
  /** How many there are, where that is worth saying. */
  readonly count: number | null;
  readonly isOpen: boolean;
  readonly body: Body;
}

/** A section of one fact a row. */
export function facts(
  id: string,
  title: string,
  rows: readonly (readonly [string, Value])[],
  isOpen = false,
): Section {
  return { id, title, count: null, isOpen, body: { kind: "facts", rows } };
}

/** A section that lists things, none where there are none. */
export function table(
  id: string,
  title: string,
  head: readonly string[],
  rows: readonly (readonly Value[])[],
  isOpen = false,
): Section[] {
  const body = { kind: "table", head, rows } as const;
  return rows.length === 0 ? [] : [{ id, title, count: rows.length, isOpen, body }];
}

/** A text in the letters of a terminal. */
export function code(text: string): Value {
  return { kind: "code", text };
}

/** A moment. */
export function moment(stamp: string): Value {
  return { kind: "time", stamp };
}

// --- what the records of the wire leave open -----------------------------------------------------

type Fields = Readonly<Record<string, unknown>>;

/** Read a list of objects out of an answer; what is none is left out. */
export function objects(value: unknown): Fields[] {
  return Array.isArray(value)
    ? value.filter((each) => typeof each === "object" && each !== null)
    : [];
}

/** Read a field as a word, empty where there is none. */
export function word(fields: unknown, name: string): string {
  const value = (Object(fields) as Fields)[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Read a field that is yes or no. */
export function flag(fields: unknown, name: string): boolean {
  return (Object(fields) as Fields)[name] === true;
}
