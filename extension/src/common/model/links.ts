/** The links in a session's text: web pages, and places in files. Anything else stays text. */

import { plain } from "./text.ts";

export type Target =
  | { readonly kind: "web"; readonly address: string }
  /** A path as written, absolute or relative to the session's folder; lines count from 1. */
  | { readonly kind: "file"; readonly path: string; readonly line: number | null };

/** The place after a path: `a.ts:12`, `a.ts:12:5`, `a.ts#L12`, `a.ts#L12-L20`. */
const PLACE = /(?::(\d{1,7})(?::\d+)?|#L(\d{1,7})(?:C\d+)?(?:-L?\d+(?:C\d+)?)?)$/;

/** At least two letters: a single letter is a Windows drive. */
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

const LONGEST = 2_000;

/** Parse the address of a link; null if it must not be opened. */
export function readTarget(address: string): Target | null {
  if (address === "" || address.length > LONGEST || address.startsWith("#")) {
    return null;
  }
  if (/^https?:\/\//i.test(address)) {
    return URL.canParse(address) ? { kind: "web", address: new URL(address).href } : null;
  }
  const place = PLACE.exec(address);
  const named = address.slice(0, place?.index ?? address.length).replace(/^file:\/\/(?=\/)/i, "");
  const path = decoded(named).replace(/^\/(?=[a-z]:[\\/])/i, "");
  const isOther = SCHEME.test(path) || /^[\\/]{2}/.test(path) || plain(path) !== path;
  const line = Number(place?.[1] ?? place?.[2] ?? 0);
  return path === "" || isOther ? null : { kind: "file", path, line: line || null };
}

/** Decode `%20` and the like; unchanged if the percent signs are literal. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
