/** Rows in side bars of 260 and 400 pixels and in each kind of theme: age, name and level (PAG-7). */

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inEachTheme } from "./pages.ts";
import { fileOf, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const HOUR = 60;
const WIDTHS = [260, 400];
const WORD = "reconcile_all_outstanding_invoices_of_the_previous_quarter_with_the_ledger";

/** Write twelve sessions of one title, a fork and a branch, long words, and a damaged file. */
function write(lab: Lab): void {
  const { codexHome, project: cwd } = lab;
  for (let number = 0; number < 12; number++) {
    const task = `Look at part ${number} of the price list again, please`;
    const spec = { task: "Review the change", further: [{ task }] };
    writeSession(codexHome, { ...spec, cwd, age: 3 + number, tokens: 20_000 * number });
  }
  const task = "Let the reader take the price lists of nine suppliers, whatever their format";
  const changes = { "prices.py": { type: "add", content: "price = 1\n" } };
  const source = writeSession(codexHome, {
    ...{ task, cwd, age: HOUR, tokens: 120_000, plan: ["Read the lists", "Write the reader"] },
    further: [{ task: "Now the tests", changes, commands: ["pytest -q"], exitCode: 1 }],
  });
  writeSession(codexHome, { task, cwd, age: HOUR - 5, tokens: 60_000, branchOf: source });
  writeSession(codexHome, { task: WORD, cwd, age: 2 * HOUR, tokens: 300_000 });
  const damaged = writeSession(codexHome, { task: "Repair the import", cwd, age: 3 * HOUR });
  appendFileSync(fileOf(codexHome, damaged), Buffer.from([0xff, 0xfe, 0x0a]));
  writeSession(codexHome, { task: "Elsewhere", cwd: "/elsewhere/shop", age: HOUR });
}

test("a row has its age, its name and its level in a narrow and in a wide side bar", async (t) => {
  const lab = Lab.shared();
  write(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1280, height: 1000 } });
  const { page, sessions } = workbench;
  const row = (name: string | RegExp) => sessions.getByRole("treeitem", { name });
  const sideBar = workbench.part("sidebar");
  const widen = async (width: number) => {
    const { x, width: now } = (await sideBar.boundingBox()) ?? { x: 0, width: 0 };
    await page.mouse.move(x + now, 500);
    await page.mouse.down();
    await page.mouse.move(x + width, 500, { steps: 4 });
    await page.mouse.up();
    await becomes(async () => Math.round((await sideBar.boundingBox())?.width ?? 0), width);
  };
  /** Read a row on the screen: its texts as far as they are not cut, and its badge. */
  const read = (one: Locator) =>
    one
      .locator(".monaco-icon-label")
      .first()
      .evaluate((label) => {
        const box = label.querySelector(".monaco-icon-label-container");
        const right = box?.getBoundingClientRect().right ?? 0;
        const text = document.createTreeWalker(label, NodeFilter.SHOW_TEXT).nextNode();
        const range = document.createRange();
        let end = text?.textContent?.length ?? 0;
        for (; text !== null && end > 0; end--) {
          range.setStart(text, 0);
          range.setEnd(text, end);
          if (range.getBoundingClientRect().right <= right) {
            break;
          }
        }
        const { content, width } = getComputedStyle(label, "::after");
        const isWhole = label.getBoundingClientRect().right <= window.innerWidth;
        const badge = isWhole && Number.parseFloat(width) > 0 ? JSON.parse(content) : null;
        return { seen: text?.textContent?.slice(0, end).replaceAll("\u00a0", " ") ?? "", badge };
      });
  await workbench.showCheckpoints();
  await shows(row(/^Review the change/));
  await row(/^Review the change/)
    .locator(".monaco-tl-twistie")
    .click();
  await row("11 older sessions").locator(".monaco-tl-twistie").click();
  await row(/^Let the reader/)
    .first()
    .click();
  await workbench.command("Codex Checkpoints: Search Sessions…");
  await page.locator(".quick-input-widget:visible input.input").fill("price");
  await page.keyboard.press("Enter");
  await shows(workbench.search.getByRole("treeitem").first());

  for (const width of WIDTHS) {
    await step(
      t,
      `at ${width} pixels a row says how old it is, its name, and its level`,
      async () => {
        await widen(width);
        const narrow = { first: /^3m {2}Review the change$/, part: 9, name: 10 };
        const wide = { first: narrow.first, part: 20, name: 28 };
        const { first, part, name } = width === 260 ? narrow : wide;
        const newest = await read(row(/^Review the change, .*3m/));
        assert.match(newest.seen, first);
        assert.equal(newest.badge, "0");
        for (const [age, level] of [
          [4, "7"],
          [9, "46"],
          [14, "85"],
        ] as const) {
          const { seen, badge } = await read(row(new RegExp(`^Review the change, .* ${age}m, `)));
          assert.match(seen, new RegExp(`^${age}m  …part ${age - 3} `), seen);
          assert.ok(seen.length >= part, seen);
          assert.equal(badge, level);
        }
        for (const [start, level] of [
          [/^Let the reader/, "23"],
          [/^reconcile_all/, "!"],
        ] as const) {
          const { seen, badge } = await read(row(start).first());
          assert.match(seen, /^(now|\dm|2h) {2}/); // a branch made by the demo is new
          assert.ok(seen.length >= name, seen);
          assert.equal(badge, level);
        }
      },
    );
  }

  await step(t, "it can be seen in each kind of theme, and so can a search", async () => {
    await inEachTheme(workbench, async (colours) => {
      for (const width of WIDTHS) {
        await widen(width);
        await workbench.screenshot(`rows ${width} ${colours}`);
      }
    });
  });
});
