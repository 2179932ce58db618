/** A page described by the server: it draws the sections and adds no text of its own. */

import type { PageLine, PageLink, PagePart, PageSection, PageTable } from "../client/protocol.ts";
import type { Trouble } from "../common/model/pages.ts";
import { COMMANDS, labelOf, QUESTIONS, type SectionsView } from "../common/model/sections.ts";
import {
  button,
  type Child,
  el,
  fill,
  fold,
  host,
  keepingFocus,
  linesOf,
  page,
  type Shown,
  send,
  TroublePlace,
  textOf,
  time,
} from "./draw.ts";

class SectionsPage implements Shown<SectionsView> {
  readonly #trouble = new TroublePlace();
  readonly #body = el("div");

  constructor() {
    fill(page(), this.#trouble.element, this.#body);
  }

  /** Draw everything; sections keep their folding. */
  show({ ids, page: shown }: SectionsView): void {
    const { title, about, actions } = shown;
    keepingFocus(() =>
      fill(
        this.#body,
        el("header", el("h1", title), ...about.map((each) => el("p", ...parts(each)))),
        buttons(ids.kind, actions),
        ...shown.sections.map(section),
      ),
    );
    this.#trouble.clear(this.#body.querySelector("button"));
    page().setAttribute("data-ready", ids.kind);
  }

  complain(trouble: Trouble): void {
    this.#trouble.show(trouble);
  }
}

/** Make the buttons of the page's commands, and a button that copies its text. */
function buttons(kind: string, actions: readonly PageLink[]): HTMLElement {
  const agrees = actions.length > 0 && kind in QUESTIONS;
  const made = actions.map((action, place) => {
    const label = (agrees ? QUESTIONS[kind] : COMMANDS[action.name]?.label) ?? action.name;
    return button(label, place === 0 ? "first" : "second", () => follow(action));
  });
  const cancel = agrees ? button("Cancel", "second", () => send({ kind: "cancel" })) : null;
  const copy = button("Copy as Text", "second", () => send({ kind: "copy" }));
  return el("div.buttons", ...made, cancel, copy);
}

function follow(target: PageLink): void {
  send({ kind: "target", target });
}

/** Draw a section; folding by the user is kept. */
function section(shown: PageSection): HTMLElement {
  const { id, title, count, state, isOpen } = shown;
  if (title === "") {
    return el("section.block", ...content(shown, "Text"));
  }
  const name = count === null ? title : `${title} (${count})`;
  const before = document.getElementById(id);
  const open = before instanceof HTMLDetailsElement ? before.open : isOpen;
  const heading = el("h2", ...stated(state, name));
  return fold(id, [heading], open, ...content(shown, name));
}

function content(shown: PageSection, name: string): readonly HTMLElement[] {
  const { sentences, rows, table, text, textForm } = shown;
  const all: (HTMLElement | null)[] = [
    ...sentences.map((each) => el("p", ...parts(each))),
    table === null ? null : tableOf(table, name),
    rows.length === 0 ? null : el("dl.facts", ...rows.flatMap(row)),
    text === null ? null : textBox(text, textForm, name),
  ];
  return all.filter((each) => each !== null);
}

/** Draw a row; without a label it is another value of the previous row. */
function row({ label, value }: PageSection["rows"][number]): readonly HTMLElement[] {
  const shown = el("dd", ...parts(value));
  return label === "" ? [shown] : [el("dt", label), shown];
}

function tableOf({ head, rows }: PageTable, label: string): HTMLElement {
  const heads = head.map((each) => el("th", { scope: "col" }, each));
  const body = rows.map((cells) => el("tr", ...cells.map((cell) => el("td", part(cell)))));
  const shown = [el("thead", el("tr", ...heads)), el("tbody", ...body)];
  return el("div.wide", el("table", { aria: { label } }, ...shown));
}

function textBox(text: string, form: string, label: string): HTMLElement {
  const looks = { role: "document", aria: { label } };
  const lines = form === "diff" ? diffLines(text) : linesOf(text);
  const box = el("div.text", looks, ...lines);
  box.classList.toggle("prose", form === "prose");
  return box;
}

const CHANGES: Readonly<Record<string, string>> = { "+": "added", "-": "removed" };

function diffLines(text: string): readonly HTMLElement[] {
  return text.split("\n").map((line) => {
    const made = el("div");
    made.className = CHANGES[line[0] ?? ""] ?? "";
    made.append(textOf(line));
    return made;
  });
}

function parts({ parts }: PageLine): readonly Child[] {
  return parts.map(part);
}

function part({ text, form, state, link }: PagePart): Child {
  if (link !== null) {
    const shown = button(labelOf(link) ?? text, "link", () => follow(link));
    shown.classList.toggle("code", form === "code" && labelOf(link) === null);
    return shown;
  }
  const [shown, ...others] = stated(state, form === "time" ? time(text) : text);
  if (others.length > 0) {
    return el("span", shown ?? null, ...others);
  }
  return form === "code" && text !== "" ? el("code", text) : (shown ?? null);
}

/** Put the icon of a state in front of a text. */
function stated(state: string | null, shown: Child): readonly Child[] {
  return state === null ? [shown] : [icon(state), shown];
}

/** The states with an icon in the stylesheet; the text says the same. */
const STATES = ["lost", "kept", "done", "unknown", "open", "error", "warning", "info"];

function icon(state: string): HTMLElement {
  const made = el("span.sign", { aria: { hidden: "true" } });
  made.classList.add(STATES.includes(state) ? state : "info");
  return made;
}

host("sections", "Report", SectionsPage);
