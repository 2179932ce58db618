/** The page of a past restore. */

import type { Trouble } from "../common/model/pages.ts";
import { type Details, modeLabel, nameOf } from "../restore/model/preview.ts";
import { type Body, detailSections, type Section, type Value } from "../restore/model/report.ts";
import {
  button,
  type Child,
  el,
  fill,
  fold,
  host,
  keep,
  keepingFocus,
  linesOf,
  page,
  restoreFigures,
  type Shown,
  send,
  TroublePlace,
  table,
  time,
  warningList,
} from "./draw.ts";

class DetailsPage implements Shown<Details> {
  readonly #trouble = new TroublePlace();
  readonly #body = el("div");

  constructor({ details: { operationId } }: Details) {
    keep({ operationId });
    fill(page(), this.#trouble.element, this.#body);
  }

  /** Draw everything; open sections stay open. */
  show(shown: Details): void {
    const { details } = shown;
    const { tokensBefore, tokensAfter, contextWindow } = details;
    const isHard = details.mode === "hard";
    const reset = details.contextReset ? "Context reset" : "Context not reset";
    const sentences = [modeLabel(details.mode), " · ", reset, " · "];
    const name = nameOf(details.label, details.checkpointId);
    keepingFocus(() =>
      fill(
        this.#body,
        el(
          "header",
          el("h1", `Restored “${name}”`),
          el("p.quiet", ...sentences, time(details.restoredAt)),
        ),
        actions(shown),
        warningList(details.warnings),
        el(
          "section.block",
          el("h2", "Context"),
          restoreFigures(tokensBefore, tokensAfter, contextWindow, isHard),
        ),
        ...detailSections(shown).map(section),
      ),
    );
    this.#trouble.clear(this.#body.querySelector("button"));
    page().setAttribute("data-ready", details.operationId);
  }

  complain(trouble: Trouble): void {
    this.#trouble.show(trouble);
  }
}

/** A part of the page; what a person opened or closed stays so. */
function section({ id, title, count, isOpen, body }: Section): HTMLElement {
  const name = count === null ? title : `${title} (${count})`;
  const before = document.getElementById(id);
  const open = before instanceof HTMLDetailsElement ? before.open : isOpen;
  return fold(id, [el("h2", name)], open, content(body, name));
}

function actions({ details }: Details): HTMLElement {
  const { branchAvailable: isThere, sourceAvailable: hasSource, contextReset } = details;
  const resume = button("Resume in Terminal", "first", () => send({ kind: "resume" }));
  const again = contextReset ? "Restore Again…" : "Reset context for performance";
  const another = button(again, "second", () => send({ kind: "another" }));
  resume.disabled = !isThere;
  another.disabled = !hasSource;
  return el("div.buttons", resume, another);
}

function content(body: Body, name: string): HTMLElement {
  switch (body.kind) {
    case "facts": {
      const rows = body.rows.flatMap(([key, one]) => [el("dt", key), el("dd", value(one))]);
      return el("dl.facts", ...rows);
    }
    case "table":
      return table(
        name,
        body.head,
        body.rows.map((row) => row.map(value)),
      );
    case "text": {
      const looks = { role: "document", aria: { label: name } };
      return el("div.text", looks, ...linesOf(body.text));
    }
    case "sentence":
      return el("p.quiet", body.text);
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
      return el("code", one.text);
    case "time":
      return time(one.stamp);
    case "session":
      return one.there
        ? button(one.name, "link", () => send({ kind: "goTo", sessionId: one.id }), {
            title: one.id,
          })
        : el("span", { title: one.id }, one.name, " ", el("em", "no longer here"));
    default:
      return one satisfies never;
  }
}

host("details", "Restore", DetailsPage);
