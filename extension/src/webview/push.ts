/**
 * The page that previews a push: the data to be sent, who can read it, and the button to send it.
 */

import { NOTHING_REDACTED } from "../client/words.ts";
import { PUSH } from "../common/model/controls.ts";
import type { Trouble } from "../common/model/pages.ts";
import type { PushView, Reader } from "../team/model/preview.ts";
import {
  button,
  type Child,
  el,
  fill,
  host,
  page,
  type Shown,
  send,
  TroublePlace,
  table,
} from "./draw.ts";

class PushPage implements Shown<PushView> {
  readonly #head = el("header");
  readonly #readers = el("div");
  readonly #size = el("section");
  readonly #outcome = el("div");
  readonly #trouble = new TroublePlace();
  readonly #push = button("Push", "first", () => {
    this.#trouble.clear();
    this.#setBusy(true);
    send({ kind: "push", team: this.#team });
  });
  readonly #contents = el("div.right");
  /** The team that can read the session; null for only its owner. */
  #team: string | null = null;

  constructor({ readers }: PushView) {
    const cancel = button("Close", "second", () => send({ kind: "cancel" }));
    fill(
      this.#readers,
      readerChoice(readers, (team) => this.#choose(team)),
    );
    const form = el(
      "form.left.parts",
      this.#readers,
      this.#size,
      this.#outcome,
      this.#trouble.element,
      el("div.buttons", this.#push, cancel),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    fill(page(), this.#head, el("div.columns", form, this.#contents));
  }

  show(view: PushView): void {
    const { name, remote, place, size, unchanged, done } = view;
    const promise = done === "" ? ` · ${PUSH}` : "";
    this.#setBusy(false);
    this.#trouble.clear(this.#push);
    fill(
      this.#head,
      el("h1", `Push “${name}”`),
      el("p.quiet", { title: place }, `To ${remote}`, promise),
    );
    fill(this.#size, el("h2", "What leaves"), el("p", unchanged === "" ? size : unchanged));
    fill(this.#outcome, done === "" ? null : el("p.done", { role: "status" }, done));
    this.#push.disabled = unchanged !== "" || done !== "";
    fill(this.#contents, ...contentsOf(view));
    page().setAttribute("data-ready", done === "" ? "preview" : "pushed");
  }

  complain(trouble: Trouble): void {
    this.#setBusy(false);
    this.#trouble.show(trouble);
    this.#trouble.element.scrollIntoView({ block: "nearest" });
    this.#push.disabled = trouble.again;
  }

  #choose(team: string | null): void {
    this.#team = team;
    send({ kind: "reader", team });
  }

  #setBusy(isBusy: boolean): void {
    this.#push.disabled = isBusy;
    for (const input of this.#readers.querySelectorAll("input")) {
      input.disabled = isBusy;
    }
    isBusy ? page().setAttribute("aria-busy", "true") : page().removeAttribute("aria-busy");
  }
}

function readerChoice(
  readers: readonly Reader[],
  choose: (team: string | null) => void,
): HTMLElement {
  const cards = readers.map(({ team, label, about }, at) => {
    const id = `reader-${at}`;
    const looks = { id, type: "radio", name: "reader", aria: { describedby: `${id}-about` } };
    const input = el("input", looks);
    input.checked = team === null;
    input.addEventListener("change", () => choose(team));
    const words = el("p.quiet", { id: `${id}-about` }, about);
    words.addEventListener("click", () => input.click());
    return el("div.card", input, el("div", el("label", { for: id }, label), words));
  });
  return el("fieldset", el("legend", "Who can read it"), ...cards);
}

function contentsOf({ facts, warning, longest, never }: PushView): readonly Child[] {
  const rows = facts.map(({ name, value }) => [name, value]);
  const nothing = el("p.quiet", NOTHING_REDACTED);
  const texts = longest.map(({ line, chars, beginning }) => [
    line,
    chars,
    el("span.said", beginning),
  ]);
  return [
    el(
      "section",
      el("h2", "Redacted and left out"),
      rows.length === 0 ? nothing : table("Redacted and left out", ["Part", "Count"], rows),
      el("p.warnings", warning),
    ),
    longest.length === 0
      ? null
      : el(
          "section.block",
          el("h2", "The longest texts that leave"),
          table("The longest texts that leave", ["Line", "Characters", "Beginning"], texts),
        ),
    el(
      "section.block",
      el("h2", "What never leaves"),
      el("ul.items.words", ...never.map((each) => el("li", each))),
    ),
  ];
}

host("push", "Push Session", PushPage);
