/** A row of the checkpoint's tree with those below it, and what can be done with it. */

import type { Note, Pin } from "../protocol.ts";
import { type Appearance, listed } from "./text.ts";

/** What a click on a row does. */
export type Action =
  | { readonly kind: "open"; readonly uri: string }
  | { readonly kind: "copy"; readonly text: string }
  /** Shows a record of the session that is cited as evidence. */
  | { readonly kind: "record"; readonly ref: string }
  /** Shows a file beside what it was when it had this hash. */
  | { readonly kind: "compare"; readonly uri: string; readonly hash: string };

/** A row with those below it. */
export interface CheckpointNode {
  /** Stays the same while the checkpoint changes, so that unfolded rows stay unfolded. */
  readonly id: string;
  readonly row: Appearance;
  readonly children: readonly CheckpointNode[];
  readonly unfolded: boolean;
  readonly action: Action | null;
  /** The fact or decision that the row stands for. */
  readonly note: Note | null;
  /** The pin that the row stands for. */
  readonly pin: Pin | null;
}

/** Make a row; what is not said of its looks follows from its label. */
export function node(
  id: string,
  some: Partial<Appearance> & { readonly label: string; readonly icon: string },
  more: Partial<CheckpointNode> = {},
): CheckpointNode {
  const description = some.description ?? "";
  const row: Appearance = {
    description,
    tooltip: some.label,
    spoken: listed(some.label, description),
    colour: null,
    ...some,
  };
  const none = { action: null, note: null, pin: null };
  return { id, row, children: [], unfolded: false, ...none, ...more };
}

/** Make a row that is unfolded while it has others below it. */
export function section(
  id: string,
  label: string,
  description: string,
  icon: string,
  children: readonly CheckpointNode[],
): CheckpointNode {
  // The editor remembers a row without children as folded: the first ones come to another row.
  const name = children.length === 0 ? `${id}/empty` : id;
  return node(name, { label, description, icon }, { children, unfolded: true });
}
