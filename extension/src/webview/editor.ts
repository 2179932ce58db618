/** The editor, as a page sees it: what it says, what it is told, what it keeps. */

import type { FromPage, ToPage } from "../model/pages.ts";

interface Api {
  postMessage(message: FromPage): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();

/** Say something to the editor. */
export function tell(message: FromPage): void {
  api.postMessage(message);
}

/** Hear what the editor says; ready from now on. */
export function listen(hear: (message: ToPage) => void): void {
  window.addEventListener("message", ({ data, origin }: MessageEvent<ToPage>) => {
    // The editor speaks from the frame around this one, which has the same origin.
    if (origin === window.origin) {
      hear(data);
    }
  });
  tell({ kind: "ready" });
}

/** What was kept, also over a reload of the window. */
export function kept(): unknown {
  return api.getState();
}

/** Keep something. */
export function keep(state: unknown): void {
  api.setState(state);
}
