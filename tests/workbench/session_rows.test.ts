/** Session rows by mouse and keyboard: the list, the checkpoint and the page show one session. */

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { fileOf, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

test("a click previews a session, Enter opens it, and all visible parts agree", async (t) => {
  const lab = Lab.shared();
  const cwd = lab.project;
  const names = ["Paint the shop", "Sweep the yard", "Water the plants"] as const;
  const [first = ""] = names.map((task, age) =>
    writeSession(lab.codexHome, { task, cwd, age: age + 1, tokens: 20_000 }),
  );
  writeSession(lab.codexHome, { task: "Repair the roof", cwd: "/elsewhere/shop", age: 9 });
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const row = (name: string) =>
    workbench.sessions.getByRole("treeitem", { name: new RegExp(`^${name}`) });
  const tab = (name: string) => page.getByRole("tab", { name: new RegExp(`^${name}`) });
  const [paint, sweep, water] = names;
  const agree = async (name: string) => {
    await shows(workbench.checkpoint.getByRole("treeitem", { name: `Task, ${name}` }));
    await becomes(() => row(name).getAttribute("aria-selected"), "true");
  };
  const isIn = (selector: string) =>
    page.evaluate((wanted) => document.activeElement?.closest(wanted) !== null, selector);
  await workbench.showCheckpoints();

  await step(t, "the row of the session in view is selected without a click", async () => {
    await agree(paint);
    assert.equal(await page.getByRole("tab").filter({ hasText: paint }).count(), 0);
  });

  await step(t, "a click shows its page and leaves the focus in the list", async () => {
    await row(sweep).click();
    await shows(tab(sweep));
    await agree(sweep);
    assert.ok(await isIn(".pane-body"));
    await workbench.screenshot("a preview");
  });

  await step(t, "the next click replaces it", async () => {
    await row(water).click();
    await shows(tab(water));
    await agree(water);
    await becomes(() => tab(sweep).count(), 0);
  });

  await step(t, "Enter opens a page that stays, and focuses it", async () => {
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await shows(tab(sweep));
    await agree(sweep);
    await becomes(() => isIn(".pane-body"), false);
    await row(paint).click();
    await agree(paint);
    await becomes(() => tab(water).count(), 0);
    assert.equal(await tab(sweep).count(), 1);
  });

  await step(t, "the list and the checkpoint follow the tab in front", async () => {
    await tab(sweep).click();
    await agree(sweep);
    await tab(paint).click();
    await agree(paint);
  });

  await step(t, "a hit in another folder unfolds that folder and selects its session", async () => {
    assert.equal(await row("Repair the roof").count(), 0);
    await workbench.command("Codex Checkpoints: Search Sessions…");
    await page.locator(".quick-input-widget:visible input.input").fill("Repair the roof");
    await page.keyboard.press("Enter");
    await workbench.search
      .getByRole("treeitem", { name: /Repair the roof/ })
      .last()
      .click();
    await shows(tab("Repair the roof"));
    await agree("Repair the roof");
    assert.equal(await row(paint).getAttribute("aria-selected"), "false");
    await workbench.screenshot("another folder unfolded");
    await row(paint).click();
    await agree(paint);
  });

  await step(t, "the menu of a row and its submenus are reached by keyboard alone", async () => {
    await row(sweep).click();
    await agree(sweep);
    await page.keyboard.press("Shift+F10");
    const entry = page.locator(".monaco-menu .action-item.focused");
    const submenu = entry.filter({ hasText: /^Show$/ });
    await page.getByRole("menuitem", { name: "Show", exact: true }).waitFor();
    for (let downs = 0; downs < 12 && (await submenu.count()) === 0; downs++) {
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("ArrowRight");
    await entry.filter({ hasText: /^Open Transcript$/ }).waitFor();
    await workbench.screenshot("menu of a row");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    const picker = page.locator(".quick-input-widget:visible");
    await picker.locator(".quick-input-title").getByText("Turns").waitFor();
    await page.keyboard.press("Escape");
    await agree(sweep);
  });

  await step(t, "a page whose session is deleted has one button left", async () => {
    await row(paint).click();
    await agree(paint);
    const whole = readFileSync(fileOf(lab.codexHome, first));
    const path = fileOf(lab.codexHome, first);
    const shown = inFront(page);
    await shown.getByRole("button", { name: "Resume in Terminal" }).waitFor();
    rmSync(path);
    await shows(shown.getByText("This session is no longer there."), 20_000);
    const able = shown.locator("button:enabled");
    await becomes(() => able.allInnerTexts(), ["Try Again"]);
    await workbench.screenshot("gone while open");
    writeFileSync(path, whole);
    await able.click();
    await shows(shown.locator("button:enabled", { hasText: "Resume in Terminal" }));
  });

  await step(t, "a page whose session Codex refuses warns, and does not offer Resume", async () => {
    const path = fileOf(lab.codexHome, first);
    const whole = readFileSync(path);
    const shown = inFront(page);
    const button = shown.getByRole("button", { name: "Resume in Terminal" });
    appendFileSync(path, Buffer.from([0xff, 0xfe, 0x0a]));
    await shows(
      shown.getByText("Codex cannot resume it: a line of its file is not UTF-8."),
      20_000,
    );
    assert.equal(await button.count(), 0);
    await shown.getByRole("button", { name: "Compact…" }).waitFor();
    await workbench.screenshot("refused while open");
    writeFileSync(path, whole);
    await button.waitFor();
  });
});
