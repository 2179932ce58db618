/** The sessions in the remote as a list, loaded page by page and only when the user asks. */

import { Newest } from "../../client/model/status.ts";
import type { RemoteSession } from "../../client/protocol.ts";

/** One page of the list. */
export interface ListingPage {
  readonly items: readonly RemoteSession[];
  readonly nextCursor: string | null;
}

/** The list as loaded so far; `why` is the message of a failed request. */
export interface Listing {
  readonly items: readonly RemoteSession[];
  readonly phase: "unread" | "reading" | "read" | "failed";
  readonly hasMore: boolean;
  readonly why: string;
}

/** The id of a row: two people may have pushed the same session. */
export function rowId({ owner, sessionId }: RemoteSession): string {
  return `${owner}/${sessionId}`;
}

const UNREAD: Listing = { items: [], phase: "unread", hasMore: false, why: "" };

/**
 * Loads the list in the background: its state is available at once, so local rows never wait for
 * the remote. An older answer never replaces a newer one.
 */
export class RemoteListing {
  readonly #ask: (cursor: string | null) => Promise<ListingPage>;
  readonly #changed: () => void;
  readonly #sentence: (error: unknown) => string;
  readonly #requests = new Newest();
  #state = UNREAD;
  #cursor: string | null = null;
  /** The cursor of the failed request, for a retry. */
  #failed: string | null = null;

  /** `ask` requests the page at a cursor, `sentence` words errors, `changed` is the callback. */
  constructor(
    ask: (cursor: string | null) => Promise<ListingPage>,
    sentence: (error: unknown) => string,
    changed: () => void,
  ) {
    this.#ask = ask;
    this.#sentence = sentence;
    this.#changed = changed;
  }

  get state(): Listing {
    return this.#state;
  }

  /** Load the first page, unless it was already requested. */
  open(): void {
    if (this.#state.phase === "unread") {
      void this.#read(null);
    }
  }

  /** Reload the first page if the list was loaded before; its rows stay until the answer. */
  refresh(): void {
    if (this.#state.phase !== "unread") {
      void this.#read(null);
    }
  }

  /** Load the next page. */
  more(): void {
    if (this.#cursor !== null && this.#state.phase !== "reading") {
      void this.#read(this.#cursor);
    }
  }

  /** Retry the failed request. */
  retry(): void {
    if (this.#state.phase === "failed") {
      void this.#read(this.#failed);
    }
  }

  /** Drop everything, for example for another remote. */
  forget(): void {
    this.#requests.begin();
    this.#state = UNREAD;
    this.#cursor = null;
  }

  async #read(cursor: string | null): Promise<void> {
    const isNewest = this.#requests.begin();
    const before = this.#state.items;
    this.#become({ items: before, phase: "reading", hasMore: false, why: "" });
    try {
      const page = await this.#ask(cursor);
      if (isNewest()) {
        // Sessions may have moved from one page to another between two requests.
        const known = new Set(cursor === null ? [] : before.map(rowId));
        const news = page.items.filter((each) => !known.has(rowId(each)));
        const items = cursor === null ? news : [...before, ...news];
        this.#cursor = page.nextCursor;
        this.#become({ items, phase: "read", hasMore: page.nextCursor !== null, why: "" });
      }
    } catch (error) {
      if (isNewest()) {
        this.#failed = cursor;
        const why = this.#sentence(error);
        this.#become({ items: before, phase: "failed", hasMore: false, why });
      }
    }
  }

  #become(state: Listing): void {
    this.#state = state;
    this.#changed();
  }
}
