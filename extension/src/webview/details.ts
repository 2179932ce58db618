/** The page of a past restore. */

import type { Trouble } from "../model/pages.ts";
import {
  type Details,
  type DetailsState,
  detailsState,
  modeLabel,
  nameOf,
} from "../model/restore.ts";
import { type Body, detailSections, type Section, type Value } from "../model/restoreDetails.ts";
import {
  button,
  type Child,
  el,
  fill,
  keep,
  kept,
  listen,
  page,
  restoreFigures,
  send,
  time,
  troubleBox,
  warningList,
} from "./draw.ts";

let state: DetailsState | null = detailsState(kept());

/** Draw everything; open sections stay open. */
function show(shown: Details): void {
  const { details } = shown;
  const { operationId } = details;
  state = { operationId, folds: state?.operationId === operationId ? state.folds : {} };
  keep(state);
  const isHard = details.mode === "hard";
  const { tokensBefore, tokensAfter, contextWindow } = details;
  const both = restoreFigures(tokensBefore, tokensAfter, contextWindow, isHard);
  const reset = details.contextReset ? "Context reset" : "Context not reset";
  const sentences = [modeLabel(details.mode), " · ", reset, " · "];
  fill(
    page(),
    el(
      "header",
      {},
      el("h1", {}, `Restored “${nameOf(details.label, details.checkpointId)}”`),
      el("p", { class: "quiet" }, ...sentences, time(details.restoredAt)),
    ),
    actions(shown),
    warningList(details.warnings),
    el("section", { class: "block" }, el("h2", {}, "Context"), both),
    ...detailSections(shown).map(section),
  );
  page().setAttribute("data-ready", operationId);
}

function actions({ details }: Details): HTMLElement {
  const { branchAvailable: isThere, sourceAvailable: hasSource, contextReset } = details;
  const resume = button("Resume in Terminal", { class: "first" }, () => send({ kind: "resume" }));
  const compare = button("Compare with Source", { class: "second" }, () =>
    send({ kind: "compare" }),
  );
  const again = contextReset ? "Restore Again…" : "Reset context for performance";
  const another = button(again, { class: "second" }, () => send({ kind: "another", mode: "hard" }));
  resume.disabled = !isThere;
  compare.disabled = !isThere || !hasSource;
  another.disabled = !hasSource;
  return el("div", { class: "buttons" }, resume, compare, another);
}

function section({ id, title, count, isOpen, body }: Section): HTMLElement {
  const name = count === null ? title : `${title} (${count})`;
  const made = el("details", { id }, el("summary", {}, el("h2", {}, name)), content(body, name));
  made.open = state?.folds[id] ?? isOpen;
  made.addEventListener("toggle", () => {
    if (state !== null && made.open !== (state.folds[id] ?? isOpen)) {
      state = { ...state, folds: { ...state.folds, [id]: made.open } };
      keep(state);
    }
  });
  return made;
}

function content(body: Body, name: string): HTMLElement {
  switch (body.kind) {
    case "facts": {
      const rows = body.rows.flatMap(([key, one]) => [el("dt", {}, key), el("dd", {}, value(one))]);
      return el("dl", { class: "facts" }, ...rows);
    }
    case "table": {
      const head = body.head.map((each) => el("th", { scope: "col" }, each));
      const cells = body.rows.map((row) => row.map((each) => el("td", {}, value(each))));
      const rows = cells.map((row) => el("tr", {}, ...row));
      const parts = [el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)];
      return el("div", { class: "wide" }, el("table", { aria: { label: name } }, ...parts));
    }
    case "text": {
      const text = body.text.replace(/\n$/, "");
      const lines = text.split("\n").map((line) => el("div", {}, line === "" ? " " : line));
      return el("div", { class: "text", role: "document", aria: { label: name } }, ...lines);
    }
    case "sentence":
      return el("p", { class: "quiet" }, body.text);
    default:
      return body satisfies never;
  }
}

function value(one: Value): Child {
  if (typeof one === "string") {
    return one;
  }
  switch (one.kind) {
    case "code":
      return el("code", {}, one.text);
    case "time":
      return time(one.stamp);
    case "session":
      return one.there
        ? button(one.name, { class: "link", title: one.id }, () =>
            send({ kind: "goTo", sessionId: one.id }),
          )
        : el("span", { title: one.id }, one.name, " ", el("em", {}, "no longer here"));
    default:
      return one satisfies never;
  }
}

/** Show an error above the page, and keep the page. */
function complain(trouble: Trouble): void {
  if (drawn === "") {
    fill(page(), el("h1", {}, "Restore"), troubleBox(trouble));
  } else {
    calm();
    page().prepend(troubleBox(trouble));
  }
}

/** Remove the error; if it had the focus, focus the first button. */
function calm(): void {
  const box = page().querySelector(".trouble");
  const isHere = box?.contains(document.activeElement) === true;
  box?.remove();
  if (isHere) {
    page().querySelector("button")?.focus();
  }
}

let drawn = "";
listen((message) => {
  if (message.kind === "details") {
    // Drawing again loses the focus, so draw only changes.
    const news = JSON.stringify(message);
    calm();
    if (news !== drawn) {
      drawn = news;
      show(message);
    }
  } else if (message.kind === "trouble") {
    complain(message);
  }
});
