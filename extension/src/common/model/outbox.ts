/** The messages to a page: whenever its script is loaded, it gets the page's whole state. */

import type { ToPage } from "./pages.ts";

/**
 * Sends a page's state at once, since the editor queues messages for a page's first load, and again
 * when its script reports that it listens: during a reload, which the editor can start as well,
 * messages are lost. A page ignores a view that it shows already.
 */
export class Outbox {
  readonly #post: (message: ToPage) => void;
  /** The view, the newest message of each kind that adds to it, and the error above it. */
  #view: ToPage | null = null;
  readonly #additions = new Map<ToPage["kind"], ToPage>();
  #error: ToPage | null = null;
  /** A message that is sent once, after the view. */
  #once: ToPage | null = null;
  #isListening = false;

  constructor(post: (message: ToPage) => void) {
    this.#post = post;
  }

  /** The page is loaded again, and shows nothing. */
  reload(): void {
    this.#isListening = false;
    this.#view = null;
    this.#additions.clear();
    this.#error = null;
  }

  /** The script of the page listens now. */
  listens(): void {
    this.#isListening = true;
    this.#postAll();
    this.#postOnce();
  }

  /** Show a view; it removes the error. */
  show(view: ToPage): void {
    const isFirst = this.#view === null;
    this.#view = view;
    this.#error = null;
    isFirst ? this.#postAll() : this.#post(view);
    this.#postOnce();
  }

  /** Add to the view a part that the page keeps, in place of the previous one of its kind. */
  add(part: ToPage): void {
    this.#additions.set(part.kind, part);
    if (this.#view !== null) {
      this.#post(part);
    }
  }

  /** Show an error, above the view if there is one. */
  complain(error: ToPage): void {
    this.#error = error;
    this.#post(error);
  }

  /** Send a message once, as soon as the page listens and shows its view. */
  once(message: ToPage): void {
    this.#once = message;
    this.#postOnce();
  }

  #postAll(): void {
    if (this.#view !== null) {
      for (const each of [this.#view, ...this.#additions.values()]) {
        this.#post(each);
      }
    }
    if (this.#error !== null) {
      this.#post(this.#error);
    }
  }

  #postOnce(): void {
    if (this.#isListening && this.#view !== null && this.#once !== null) {
      this.#post(this.#once);
      this.#once = null;
    }
  }
}
