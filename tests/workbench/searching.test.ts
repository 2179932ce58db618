/** What was said and done in all sessions is found as one types, and each hit opens its record. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inEachTheme } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

const LINK = "$(alert) [link](command:workbench.action.toggleSidebarVisibility)";

function write(lab: Lab): void {
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the price list faster",
    cwd: lab.project,
    age: 90,
    commands: ["cat shop.py"],
    output: "read_prices() took 412 ms\n",
    answer: `The list is read twice: Read_Prices is called by show() and by total(). ${LINK}`,
    further: [{ task: "Then read it once", commands: ["make check"], answer: "Done." }],
  });
  writeSession(lab.codexHome, {
    task: "Name the cave after read_prices",
    cwd: `${lab.project}-other`,
    age: 2,
    answer: "It opens.",
  });
}

test("a search fills a list as one types, and its hits open their records", async (t) => {
  const lab = Lab.shared();
  write(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 900 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const title = picker.locator(".quick-input-title");
  const rows = picker.locator(".monaco-list-row");
  const record = workbench.editor("codex-checkpoints://recalled");
  const says = (text: string | RegExp) => title.filter({ hasText: text }).waitFor();
  await workbench.showCheckpoints();

  await step(t, "hits stand below their session, the newest session first", async () => {
    await workbench.command("Codex Checkpoints: Search in Sessions…");
    await picker.locator("input").fill("read_prices");
    await says(/^Search in Sessions: \d+ hits in 2 sessions$/);
    const texts = await rows.allTextContents();
    assert.match(texts[0] ?? "", /Name the cave after read_prices.*turn 1 · you/);
    assert.ok(
      texts.some((text) => /list is read twice: Read_Prices.*turn 1 · Codex/.test(text)),
      `${texts}`,
    );
    assert.ok(
      texts.some((text) => /read_prices\(\) took 412 ms.*turn 1 · output/.test(text)),
      `${texts}`,
    );
    await picker.getByText(/Name the cave after read_prices · .*-other · 2m ago/).waitFor();
    await picker.getByText(/Make the price list faster · .* · 1h ago/).waitFor();
    await inEachTheme(workbench, async (colours) => {
      await workbench.command("Codex Checkpoints: Search in Sessions…");
      await picker.locator("input").fill("read_prices");
      await says("in 2 sessions");
      await workbench.screenshot(`search in ${colours}`);
      await page.keyboard.press("Escape");
    });
  });

  await step(t, "another text takes the place of the one before", async () => {
    await workbench.command("Codex Checkpoints: Search in Sessions…");
    await picker.locator("input").pressSequentially("cave", { delay: 40 });
    await says("1 hit in 1 session");
    await picker.locator("input").fill("frankincense");
    await says("nothing found");
    await picker.locator("input").fill("Read_Prices");
    await says("1 hit in 1 session");
  });

  await step(t, "a hit opens its record, and its session comes into view", async () => {
    await page.keyboard.press("Enter");
    await record.getByText(/^────\s#\d+\s·\sassistant\s·\sturn\s1$/).waitFor();
    await record.getByText(/Read_Prices\sis\scalled/).waitFor();
    await workbench.checkpoint.getByText("Then read it once").first().waitFor();
  });

  await step(t, "a file tells which sessions used it", async () => {
    await page.keyboard.press("Control+P");
    await picker.locator("input").fill("shop.py");
    await rows.filter({ hasText: "shop.py" }).first().waitFor();
    await page.keyboard.press("Enter");
    const tab = page.getByRole("tab", { name: /^shop\.py/ });
    await workbench.menu(tab, "Show Sessions for This File");
    await says("Sessions for This File: 1 hit in 1 session");
    assert.match((await rows.allTextContents()).join("\n"), /read shop\.py.*turn 1/);
    await workbench.screenshot("sessions of a file");
    await page.keyboard.press("Enter");
    await record.getByText(/^────\s#\d+\s·/).waitFor();
  });
});
