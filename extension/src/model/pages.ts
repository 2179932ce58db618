/**
 * What the editor and its pages say to one another: one file for both sides.
 *
 * A page is drawn from what it is sent and keeps only what a person did in it; what it asks for is
 * read here before it is done.
 */

import type { LineageNode, RestoreDetails, Restored } from "../protocol.ts";
import { type Mode, modeOf, type Wish, wishOf } from "./restore.ts";

/** A restore as it would be. */
export interface Preview {
  readonly kind: "preview";
  readonly sessionId: string;
  readonly checkpointId: string;
  /** The wish that was answered. */
  readonly wish: Wish;
  readonly would: Restored;
  readonly source: string;
  /** The number of the marker's turn, where the session still has it. */
  readonly turn: number | null;
}

/** A restore as it was. */
export interface Details {
  readonly kind: "details";
  readonly details: RestoreDetails;
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** The tree that both sessions stand in, as far as it is known. */
  readonly lineage: readonly LineageNode[];
  /** The state at the turn, where it can still be told. */
  readonly state: unknown;
}

/** Something did not work; `again` says whether asking once more may help. */
export interface Trouble {
  readonly kind: "trouble";
  readonly sentence: string;
  readonly again: boolean;
}

export type ToPage = Preview | Details | Trouble;

export type FromPage =
  /** It is drawn and can be sent something. */
  | { readonly kind: "ready" }
  /** What it was told did not work may work now. */
  | { readonly kind: "again" }
  /** What a person chose, for the next time that the page is drawn. */
  | { readonly kind: "wish"; readonly wish: Wish }
  /** What would come of another wish? */
  | { readonly kind: "preview"; readonly wish: Wish }
  | { readonly kind: "restore"; readonly wish: Wish }
  | { readonly kind: "cancel" }
  | { readonly kind: "goTo"; readonly sessionId: string }
  | { readonly kind: "resume" }
  | { readonly kind: "compare" }
  /** Open the preview of another restore from the same marker. */
  | { readonly kind: "another"; readonly mode: Mode };

/** Read what a page says; null for what none of ours would say. */
export function fromPage(value: unknown): FromPage | null {
  const { kind, wish, sessionId, mode } = Object(value) as Record<string, unknown>;
  switch (kind) {
    case "ready":
    case "again":
    case "cancel":
    case "resume":
    case "compare":
      return { kind };
    case "wish":
    case "preview":
    case "restore":
      return { kind, wish: wishOf(wish) };
    case "goTo":
      return typeof sessionId === "string" ? { kind, sessionId } : null;
    case "another":
      return { kind, mode: modeOf(mode) };
    default:
      return null;
  }
}

/** What the editor keeps of a preview while its window is reloaded. */
export interface PreviewState {
  readonly sessionId: string;
  readonly checkpointId: string;
  readonly wish: Wish;
}

/** What it keeps of details. */
export interface DetailsState {
  readonly operationId: string;
  /** The sections that a person opened or folded. */
  readonly folds: Readonly<Record<string, boolean>>;
}

/** Read what was kept of a preview. */
export function previewState(value: unknown): PreviewState | null {
  const { sessionId, checkpointId, wish } = Object(value) as Record<string, unknown>;
  return typeof sessionId === "string" && typeof checkpointId === "string"
    ? { sessionId, checkpointId, wish: wishOf(wish) }
    : null;
}

/** Read what was kept of details. */
export function detailsState(value: unknown): DetailsState | null {
  const { operationId, folds } = Object(value) as Record<string, unknown>;
  if (typeof operationId !== "string") {
    return null;
  }
  const known = Object.entries(Object(folds)).filter(([, open]) => typeof open === "boolean");
  return { operationId, folds: Object.fromEntries(known) as Record<string, boolean> };
}
