/** Pins: files, or lines of them, that every state pack of a session offers. */

import type { Pin } from "../protocol.ts";
import { type CheckpointNode, node, section } from "./node.ts";
import { cut, listed, plain } from "./text.ts";

/** The pins of a session, the newest first; null where it has none. */
export function pinsNode(pins: readonly Pin[]): CheckpointNode | null {
  if (pins.length === 0) {
    return null;
  }
  const children = [...pins].reverse().map((pin) => {
    const lines = linesOf(pin);
    const label = cut(plain(pin.uri), 400);
    return node(
      `pins/${pathOf(pin)}`,
      {
        label,
        description: lines,
        spoken: listed(`pinned file ${label}`, lines),
        icon: "pinned",
      },
      { action: { kind: "open", uri: pin.uri }, pin },
    );
  });
  return section("pins", "Pinned Files", `${pins.length}`, "pin", children);
}

/** How the server is told which: `src/a.py`, `src/a.py#L3`, `src/a.py#L3-L9`. */
export function pathOf({ uri, start, end }: Pin): string {
  if (start === null) {
    return uri;
  }
  return end === null || end === start ? `${uri}#L${start}` : `${uri}#L${start}-L${end}`;
}

/** Whether a file is pinned as a whole. */
export function isPinned(pins: readonly Pin[], uri: string): boolean {
  return pins.some((pin) => pin.uri === uri && pin.start === null);
}

function linesOf({ start, end }: Pin): string {
  if (start === null) {
    return "";
  }
  return end === null || end === start ? `line ${start}` : `lines ${start} to ${end}`;
}
