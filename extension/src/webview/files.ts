/**
 * The files of a restore page: those that can be restored, with checkboxes, and other files that
 * differ.
 */

import type { Restored, RestoredFile, RestoredFiles } from "../client/protocol.ts";
import { FILE_NOTES, NOT_AS_THEN } from "../client/words.ts";
import {
  type FilesView,
  lineCounts,
  SCOPES,
  type Scope,
  scopeLabel,
} from "../restore/model/files.ts";
import { button, type Child, el, fill, fold, keepingFocus, send } from "./draw.ts";

/** The id of the sentence about the extent of the restore. */
export const PROMISE = "promise";

/** The id of the sentence that says why there are no files to restore. */
const NO_FILES = "no-files";

/** Number of commands shown without a click. */
const FEW_COMMANDS = 3;

/** The choice of what to restore, and of the files. */
export class FileChoice {
  readonly element = el("section.files", { aria: { label: "Files" } });
  readonly scopes: HTMLElement;
  readonly #done = el("div", { role: "status" });
  readonly #rows = el("div");
  readonly #inputs = new Map<Scope, HTMLInputElement>();
  readonly #changed: () => void;
  /** The checkboxes that the user changed. */
  readonly #ticks = new Map<string, boolean>();
  #scope: Scope = "conversation";
  #view: FilesView | null = null;
  #would: Restored | null = null;
  /** The last shown action, as JSON. */
  #shownDone = JSON.stringify([null, false]);

  /** `changed` is called after each change of the choice. */
  constructor(changed: () => void) {
    this.#changed = changed;
    this.scopes = el(
      "fieldset",
      el("legend", "What to restore"),
      el("div.scopes", ...SCOPES.map((scope) => this.#radio(scope))),
    );
    fill(this.element, el("h2", "Files"), this.#done, this.#rows);
    this.#draw();
  }

  get scope(): Scope {
    return this.#scope;
  }

  /** The paths of the files to restore. */
  get chosen(): readonly string[] {
    return this.#scope === "conversation"
      ? []
      : this.#offered.filter((file) => this.#isTicked(file)).map(({ path }) => path);
  }

  /** Show the files that can be restored, and the last action on them. */
  show(view: FilesView): void {
    this.#showDone(view);
    this.#view = view;
    this.#choose(this.#offered.length === 0 ? "conversation" : this.#scope);
  }

  /** Draw only news, so that a screen reader reads it once. */
  #showDone({ done, canUndo }: FilesView): void {
    const news = JSON.stringify([done, canUndo]);
    if (news !== this.#shownDone) {
      this.#shownDone = news;
      const hadFocus = this.#done.contains(document.activeElement);
      fill(this.#done, done && doneBox(done, canUndo));
      if (hadFocus) {
        this.#inputs.get(this.#scope)?.focus();
      }
    }
  }

  /** Show which other files differ from the marker. */
  differ(would: Restored): void {
    this.#would = would;
    this.#draw();
  }

  get #offered(): readonly RestoredFile[] {
    return this.#view?.plan?.rows.filter(({ offered }) => offered) ?? [];
  }

  #isTicked({ path, on }: RestoredFile): boolean {
    return this.#ticks.get(path) ?? on;
  }

  #radio(scope: Scope): HTMLElement {
    const aria = { describedby: `${PROMISE} ${NO_FILES}` };
    const input = el("input", { id: `scope-${scope}`, type: "radio", name: "scope", aria });
    input.addEventListener("change", () => this.#choose(scope));
    this.#inputs.set(scope, input);
    return el("label", input, scopeLabel(scope));
  }

  #choose(scope: Scope): void {
    this.#scope = scope;
    this.#draw();
    this.#changed();
  }

  #draw(): void {
    for (const [scope, input] of this.#inputs) {
      input.checked = scope === this.#scope;
      input.disabled = scope !== "conversation" && this.#offered.length === 0;
    }
    this.element.classList.toggle("idle", this.#scope === "conversation");
    const plan = this.#view?.plan ?? null;
    const known = plan?.rows ?? [];
    const rows = known.filter(({ state }) => state !== "same");
    const others = differing(this.#would, new Set(known.map(({ path }) => path)));
    const sentence = this.#view === null ? "Reading the session…" : this.#view.sentence;
    keepingFocus(() =>
      fill(
        this.#rows,
        rows.length === 0 ? el("p.quiet", { id: NO_FILES }, sentence) : null,
        rows.length === 0 ? null : el("ul.file-rows", ...rows.map((file) => this.#row(file))),
        others.length === 0 ? null : el("p", NOT_AS_THEN),
        others.length === 0 ? null : el("ul.items", ...others),
        plan && commandsOf(plan),
      ),
    );
  }

  #row(file: RestoredFile): HTMLElement {
    const { path, label, why, offered } = file;
    const counts = lineCounts(file);
    const aria = { label: `${path}, ${label}` };
    const tick = offered ? el("input", { type: "checkbox", aria }) : el("span");
    if (tick instanceof HTMLInputElement) {
      tick.disabled = this.#scope === "conversation";
      tick.checked = !tick.disabled && this.#isTicked(file);
      tick.addEventListener("change", () => {
        this.#ticks.set(path, tick.checked);
        this.#changed();
      });
    }
    const name = button(path, "link", () => send({ kind: "file", uri: path }));
    const title = el("div", name, counts === "" ? null : el("span.file-counts", counts));
    const about = el("p.quiet", el("span.file-label", label), why === null ? null : ` · ${why}`);
    return el("li.file-row", tick, el("div", title, about));
  }
}

/** Show an action, its limits, the files that were written, and an undo button. */
function doneBox(done: RestoredFiles, canUndo: boolean): HTMLElement {
  const written = done.rows.filter((row) => row.written);
  const undo = canUndo ? button("Undo", "second", () => send({ kind: "undo" })) : null;
  const names = written.map(({ path }) => el("li", path));
  return el(
    "div.done",
    el("p", done.headline),
    names.length === 0 ? null : el("ul.items", ...names),
    undo && el("div.buttons", undo),
  );
}

/** The commands whose effect on files is unknown. */
function commandsOf({ remark, commands }: RestoredFiles): Child {
  if (remark === null) {
    return null;
  }
  const rows = commands.map((command) => el("li", command));
  return rows.length === 0
    ? el("p.quiet", remark)
    : fold(
        "commands",
        [el("span.quiet", remark)],
        rows.length <= FEW_COMMANDS,
        el("ul.items", ...rows),
      );
}

/** List the files that differ from the marker and are not listed elsewhere. */
function differing(would: Restored | null, listed: ReadonlySet<string>): readonly HTMLElement[] {
  if (would === null) {
    return [];
  }
  const kept = would.mode === "soft" ? would.included.filter(({ part }) => part === "files") : [];
  const named = new Set([...listed, ...kept.map(({ id }) => id)]);
  return [...fileNotes(would)]
    .filter(([uri, note]) => note !== FILE_NOTES.not_compared && !named.has(uri))
    .map(([uri, note]) => fileRow(uri, note));
}

/** Make the row of a file with its note; a changed file opens its diff. */
export function fileRow(uri: string, note: string | undefined): HTMLElement {
  const open = () => send({ kind: "file", uri });
  const name = note === FILE_NOTES.drift ? button(uri, "link", open) : uri;
  return el("li", name, note === undefined ? null : el("em.mark", ` ${note}`));
}

/** Map the files that differ from the marker to notes. */
export function fileNotes({ warnings }: Restored): ReadonlyMap<string, string> {
  const words: Readonly<Record<string, string>> = FILE_NOTES;
  const notes = warnings.flatMap(({ code, files }) =>
    files.map((file) => [file, words[code] ?? ""] as const),
  );
  return new Map(notes);
}
