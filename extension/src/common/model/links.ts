/** The links of a session's text: a page on the web, or a place in a file. Any other is text. */

import { plain } from "./text.ts";

export type Target =
  | { readonly kind: "web"; readonly address: string }
  /** A path as it was written, absolute or below the folder of the session; lines count from 1. */
  | { readonly kind: "file"; readonly path: string; readonly line: number | null };

/** `a.ts:12`, `a.ts:12:5`, `a.ts#L12`, `a.ts#L12-L20`: the place behind a path. */
const PLACE = /(?::(\d{1,7})(?::\d+)?|#L(\d{1,7})(?:C\d+)?(?:-L?\d+(?:C\d+)?)?)$/;

/** A scheme has two letters or more: one letter is a drive. */
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

const LONGEST = 2_000;

/** Read the address of a link; null if nothing may be opened there. */
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

/** Without `%20` and the like, where that is what the percent signs mean. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
