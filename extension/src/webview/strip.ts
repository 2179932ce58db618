/** The turns of a session as a strip that opens into a picture; a turn can be chosen in both. */

import { cut } from "../common/model/text.ts";
import { type SessionView, spokenTurn, turnName, turnText } from "../page/model/page.ts";
import { button, el, fill } from "./draw.ts";
import { drawPicture, keyOf, legend, PICTURE, rowAt, STRIP } from "./picture.ts";

export class Strip {
  readonly #chart = el("div.chart", { aria: { hidden: "true" } });
  readonly #slider = el("input", { id: "turn", type: "range", min: "1", step: "1" });
  readonly #pointed = el("p.quiet.pointed", { aria: { hidden: "true" } });
  readonly #key = el("p.key.quiet", { aria: { hidden: "true" } });
  readonly #open = button("Show Picture", "link", () => this.#toggle());
  readonly element = el(
    "section.strip",
    { aria: { label: "Context by turn" } },
    el(
      "div.above",
      el("label.named", { for: "turn" }, "Context by turn"),
      this.#pointed,
      this.#open,
    ),
    el("div.frame", this.#chart, el("div.budget.scrubber", this.#slider)),
    this.#key,
  );
  readonly #choose: (row: number) => void;
  #view: SessionView;
  #chosen = -1;
  #isOpen = false;

  constructor(view: SessionView, choose: (row: number) => void) {
    this.#view = view;
    this.#choose = choose;
    this.#slider.addEventListener("input", () => choose(this.#slider.valueAsNumber - 1));
    const at = ({ clientX }: MouseEvent) =>
      rowAt(this.#chart, this.#view.rows, clientX, this.#shape);
    this.#chart.addEventListener("click", (event) => {
      this.#choose(at(event));
      this.#slider.focus({ preventScroll: true });
    });
    this.#chart.addEventListener("mousemove", (event) => this.#point(at(event)));
    this.#chart.addEventListener("mouseleave", () => this.#point(null));
    new ResizeObserver(() => this.#draw()).observe(this.#chart);
    this.#setOpen(false);
  }

  /** Show the turns and the chosen row. */
  show(view: SessionView, chosen: number): void {
    this.#view = view;
    this.#chosen = chosen;
    const { rows, events } = view;
    const row = rows[chosen];
    this.element.hidden = rows.length === 0;
    this.#slider.max = String(Math.max(1, rows.length));
    this.#slider.disabled = rows.length === 0;
    this.#slider.value = String(chosen + 1);
    const words = row === undefined ? "No turn" : spokenTurn(row, events);
    this.#slider.setAttribute("aria-valuetext", words);
    fill(this.#key, ...keyOf(view));
    this.#draw();
    this.#point(null);
  }

  #toggle(): void {
    this.#setOpen(!this.#isOpen);
    this.#draw();
    this.#point(null);
  }

  #setOpen(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.element.classList.toggle("open", isOpen);
    this.#open.setAttribute("aria-expanded", String(isOpen));
    fill(this.#open, isOpen ? "Hide Picture" : "Show Picture");
  }

  get #shape(): typeof PICTURE {
    return this.#isOpen ? PICTURE : STRIP;
  }

  #draw(): void {
    drawPicture(this.#chart, this.#view, this.#chosen, this.#shape);
  }

  /** Describe the turn at the pointer; the chosen turn is described below. */
  #point(at: number | null): void {
    const row = at === null ? undefined : this.#view.rows[at];
    const words =
      row === undefined
        ? legend(this.#view, this.#isOpen)
        : `${turnName(row)}: ${cut(row.turns[0].task, 80)} ${turnText(row)}`;
    fill(this.#pointed, words);
  }
}
