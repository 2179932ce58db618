/** Runs the page's second script when it is needed first, so that it does not delay the picture. */

type Parsers = typeof import("./parsers.ts");

declare global {
  /** Set by the second script. */
  var parsers: Parsers | undefined;
}

/** Return the parsers of Markdown and code. */
export function loadedParsers(): Parsers {
  if (window.parsers === undefined) {
    // As plain text it was neither compiled nor run so far.
    const text = document.querySelector<HTMLScriptElement>('script[type="text/plain"]');
    const script = document.createElement("script");
    script.nonce = text?.nonce ?? "";
    script.text = text?.text ?? "";
    text?.replaceWith(script);
  }
  if (window.parsers === undefined) {
    throw new Error("the page has no parsers");
  }
  return window.parsers;
}
