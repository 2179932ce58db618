/** The messages between pages and the extension. */

import { REMEDIES, type Remedy } from "../../client/model/refusals.ts";
import type { PageLink } from "../../client/protocol.ts";
import { type CompactionView, readBudget } from "../../compaction/model/preview.ts";
import {
  type Conversation,
  type PagePlace,
  type PlanAtTurn,
  readAction,
  type SessionView,
  type TurnAction,
  type Whole,
} from "../../page/model/page.ts";
import { type FilesView, readPaths, readScope, type Scope } from "../../restore/model/files.ts";
import { type Preview, type RestoreOptions, readOptions } from "../../restore/model/preview.ts";
import type { PushView } from "../../team/model/preview.ts";
import { readTarget, type SectionsView } from "./sections.ts";

/**
 * An error with its remedy buttons. `again` means that the page shows nothing current; `gone` means
 * that its session no longer exists, so all other buttons are disabled.
 */
export interface Trouble {
  readonly kind: "trouble";
  readonly sentence: string;
  readonly again: boolean;
  readonly gone: boolean;
  readonly remedies: readonly Remedy[];
}

export type ToPage =
  | Preview
  | FilesView
  | SectionsView
  | CompactionView
  | PushView
  | SessionView
  | Conversation
  | Whole
  | PagePlace
  | PlanAtTurn
  | Trouble;

/** The messages of one word; `ready` means that the page accepts messages. */
const WORDS = [
  "ready",
  "again",
  "cancel",
  "undo",
  "resume",
  "compact",
  "diff",
  "copy",
  "losses",
  "search",
  "pull",
] as const;

/** A message of a page. */
export type FromPage =
  | { readonly kind: (typeof WORDS)[number] }
  | { readonly kind: "turn"; readonly turnId: string; readonly action: TurnAction }
  | { readonly kind: "conversation"; readonly turnId: string; readonly offset: number }
  | { readonly kind: "preview"; readonly options: RestoreOptions }
  | {
      readonly kind: "restore";
      readonly options: RestoreOptions;
      readonly scope: Scope;
      /** The paths of the chosen files. */
      readonly files: readonly string[];
    }
  | { readonly kind: "reader" | "push"; readonly team: string | null }
  | { readonly kind: "budget"; readonly budget: number | null }
  | { readonly kind: "record" | "whole"; readonly ref: string }
  | { readonly kind: "link"; readonly address: string }
  | { readonly kind: "file"; readonly uri: string }
  | { readonly kind: "change"; readonly uri: string; readonly turnId: string | null }
  | { readonly kind: "target"; readonly target: PageLink }
  | { readonly kind: "goTo"; readonly sessionId: string }
  | { readonly kind: "planAtTurn"; readonly turnId: string }
  | { readonly kind: "remedy"; readonly remedy: Remedy };

/** Read the ids that a page kept across a reload; null if one is missing. */
export function readState<K extends string>(
  value: unknown,
  names: readonly K[],
): Readonly<Record<K, string>> | null {
  const given = Object(value) as Record<K, unknown>;
  return names.every((name) => typeof given[name] === "string")
    ? (Object.fromEntries(names.map((name) => [name, given[name]])) as Record<K, string>)
    : null;
}

/** Return a key of ids, which does not depend on their order. */
export function keyOf(ids: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(ids).sort());
}

/** Parse a page's message; null if it is invalid. */
export function fromPage(value: unknown): FromPage | null {
  const given = Object(value) as Record<string, unknown>;
  const { kind, options, budget, ref, uri, sessionId, turnId, offset, remedy } = given;
  const { action: asked, address, scope, files: paths, team, target } = given;
  switch (kind) {
    case "preview":
      return { kind, options: readOptions(options) };
    case "restore":
      return {
        ...{ kind, options: readOptions(options) },
        ...{ scope: readScope(scope), files: readPaths(paths) },
      };
    case "budget":
      return { kind, budget: readBudget(budget) };
    case "reader":
    case "push":
      return team === null || typeof team === "string" ? { kind, team } : null;
    case "record":
    case "whole":
      return typeof ref === "string" ? { kind, ref } : null;
    case "link":
      return typeof address === "string" ? { kind, address } : null;
    case "file":
      return typeof uri === "string" ? { kind, uri } : null;
    case "change":
      return typeof uri === "string" && (turnId === null || typeof turnId === "string")
        ? { kind, uri, turnId }
        : null;
    case "turn": {
      const action = readAction(asked);
      return typeof turnId === "string" && action !== null ? { kind, turnId, action } : null;
    }
    case "conversation":
      return typeof turnId === "string" && Number.isInteger(offset)
        ? { kind, turnId, offset: Number(offset) }
        : null;
    case "planAtTurn":
      return typeof turnId === "string" ? { kind, turnId } : null;
    case "target": {
      const found = readTarget(target);
      return found === null ? null : { kind, target: found };
    }
    case "goTo":
      return typeof sessionId === "string" ? { kind, sessionId } : null;
    case "remedy":
      return Object.hasOwn(REMEDIES, String(remedy)) ? { kind, remedy: remedy as Remedy } : null;
    default: {
      const word = WORDS.find((each) => each === kind);
      return word === undefined ? null : { kind: word };
    }
  }
}
