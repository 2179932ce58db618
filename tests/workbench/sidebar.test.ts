/** The side bar: its rows, refusals, undo, and deleted sessions. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { fileOf, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const DAY = 24 * 60;

test("rows show age and meter; sessions are renamed and archived, and each action can be undone", async (t) => {
  const lab = Lab.shared();
  const cwd = lab.project;
  const later = { task: "Now the very last of all the things that were said in it" };
  const long = "Find out why the import of large files takes minutes on the build server";
  const home = lab.codexHome;
  const slow = writeSession(home, { task: long, cwd, age: 2, tokens: 118_000, further: [later] });
  writeSession(home, { task: "Tidy the docs", cwd, age: 9, tokens: 300_000 });
  writeSession(home, { task: "Name the parts", cwd, age: 3 * DAY, tokens: 20_000 });
  for (const age of [1, 2, 3, 4]) {
    const further = age === 2 ? [{ task: "And now the docs, all of them" }] : [];
    const review = { task: "Review the change", tokens: 9_000, further };
    writeSession(home, { ...review, cwd, age: 10 * DAY + age });
  }
  writeSession(home, { task: "Something else", cwd: "/elsewhere/shop", age: 5 });
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const row = (name: string | RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const toast = (text: string | RegExp) =>
    page.locator(".notification-toast").filter({ hasText: text });
  const isWhole = async (shown: Locator) => {
    await shown.waitFor();
    const isCut = await shown.evaluate((element) => {
      const line = element.closest(".monaco-icon-label-container");
      return line === null || line.scrollWidth > line.clientWidth;
    });
    assert(!isCut, await shown.innerText());
  };
  /** The badge at the end of a row, which is whole however long its request is. */
  const badge = (name: RegExp) =>
    row(name)
      .locator(".monaco-icon-label")
      .first()
      .evaluate((label) => {
        const { content, width } = getComputedStyle(label, "::after");
        return Number.parseFloat(width) > 0 ? JSON.parse(content) : null;
      });
  const picker = page.locator(".quick-input-widget:visible");
  const input = picker.locator("input[type=text]").first();
  await workbench.showCheckpoints();

  await step(
    t,
    "a row has its age, the first request and its level; the editor alone cuts the request",
    async () => {
      // The workbench may take minutes to start.
      await shows(row(/^Find out why .*, [2-6]m, context 45 percent/));
      for (const words of [/^(9|1[0-3])m\s+Tidy the docs$/, /^3d\s+Name the parts$/]) {
        await isWhole(workbench.sessions.getByText(words).first());
      }
      await shows(row(/^Find out why/).getByText(new RegExp(`^[2-6]m\\s+${long}$`)));
      assert.equal(await badge(/^Find out why/), "45");
      assert.equal(await badge(/^Tidy the docs/), "!");
      assert.equal(await workbench.sessions.getByText("Now the very last").count(), 0);
      await workbench.screenshot("side bar");
    },
  );

  await step(
    t,
    "sessions are listed by day and week, runs of a program behind the newest, others apart",
    async () => {
      await shows(row("Today"));
      await shows(row("This Week"));
      await shows(row("Last Week"));
      assert.equal(await row(/^Review the change/).count(), 1);
      await row(/^Review the change/)
        .locator(".monaco-tl-twistie")
        .click();
      await row("3 older sessions").locator(".monaco-tl-twistie").click();
      await row("Other Folders").locator(".monaco-tl-twistie").click();
      await row("shop").locator(".monaco-tl-twistie").click();
      await shows(row("Something else"));
      assert.equal(await row(/^Review the change/).count(), 4);
      await shows(row(/^Review the change, And now the docs, all of them, 10d/));
      const alike = row(/^Review the change, And now the docs, all of them, 10d/);
      await shows(alike.getByText(/^10d\s+And now the docs, all of them$/));
      assert.equal(await badge(/^Review the change, And now the docs, all of them, 10d/), "3");
      await workbench.screenshot("side bar folds");
    },
  );

  await step(t, "a session added to a folded day is there when it is unfolded", async () => {
    const fold = row("Today").locator(".monaco-tl-twistie");
    await fold.click();
    await row(/^Find out why/).waitFor({ state: "detached" });
    writeSession(home, { task: "Water the plants", cwd, age: 1 });
    await becomes(() => JSON.stringify(lab.run("sessions")).includes("Water the plants"), true);
    await page.waitForTimeout(2_000); // the list is loaded again meanwhile
    await fold.click();
    await shows(row(/^Water the plants/));
    writeSession(home, { task: "Sweep the floor", cwd, age: 1 });
    await shows(row(/^Sweep the floor/));
  });

  await step(
    t,
    "the status bar shows the session in view, and offers what to do with it",
    async () => {
      await row(/^Find out why/).click();
      await workbench.status.getByText("Codex 45%").waitFor();
      await workbench.status.click();
      for (const name of ["Resume in Terminal", "Compact Session…", "Search Sessions…"]) {
        await picker.locator(".monaco-list-row").filter({ hasText: name }).waitFor();
      }
      await workbench.screenshot("status bar menu");
      await page.keyboard.press("Escape");
    },
  );

  await step(
    t,
    "it is readable in every kind of theme, and so is the page of the checkpoint",
    async () => {
      await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
      await inFront(page).getByRole("heading", { name: "Checkpoint" }).waitFor();
      await inEachTheme(workbench, (colours) => workbench.screenshot(colours));
    },
  );

  await step(t, "an archived session is restored by a click", async () => {
    await workbench.menu(row(/^Tidy the docs/), "Archive Session");
    await shows(toast("Archived “Tidy the docs”."));
    await row(/^Tidy the docs/).waitFor({ state: "hidden" });
    await workbench.screenshot("archived with undo");
    await toast("Archived").getByRole("button", { name: "Undo" }).click();
    await shows(row(/^Tidy the docs/));
  });

  await step(t, "a session is renamed from the menu, and found by its name", async () => {
    await workbench.menu(row(/^Name the parts/), "Rename Session…");
    await input.fill("Parts, the \u202eodd ones");
    await page.keyboard.press("Enter");
    await workbench.command("Codex Checkpoints: Find Session by Name…");
    await input.fill("odd ones");
    await row(/^Tidy the docs/).waitFor({ state: "hidden" }); // while one types
    await page.keyboard.press("Escape");
    await shows(row(/^Tidy the docs/));
    await workbench.command("Codex Checkpoints: Find Session by Name…");
    await input.fill("odd ones");
    await page.keyboard.press("Enter");
    await shows(row(/^Parts, the odd ones/));
    await row(/^Tidy the docs/).waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(row(/^Tidy the docs/));
  });

  await step(t, "archived sessions have a list of their own, and leave it again", async () => {
    await workbench.menu(row(/^Tidy the docs/), "Archive Session");
    await row(/^Tidy the docs/).waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Show Archived Sessions");
    await shows(row(/^Tidy the docs/));
    await row(/^Parts, the odd ones/).waitFor({ state: "hidden" });
    await workbench.screenshot("archived sessions");
    await workbench.menu(row(/^Tidy the docs/), "Unarchive Session");
    await row(/^Tidy the docs/).waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(row(/^Tidy the docs/));
  });

  await step(t, "a refusal has its button: an archived session is unarchived", async () => {
    await row(/^Tidy the docs/).click();
    await workbench.command("Codex Checkpoints: Archive Session");
    await row(/^Tidy the docs/).waitFor({ state: "hidden" });
    await workbench.command("Notifications: Clear All Notifications");
    await workbench.command("Codex Checkpoints: Resume in Terminal");
    await shows(toast("This session is archived."));
    await workbench.screenshot("refusal with a button");
    await toast("This session is archived.").getByRole("button", { name: "Unarchive" }).click();
    await shows(row(/^Tidy the docs/));
  });

  await step(t, "without Codex on the PATH nothing is typed into a terminal", async () => {
    await row(/^Parts, the odd ones/).click();
    await workbench.command("Codex Checkpoints: Resume in Terminal");
    await shows(toast("Codex was not found on the PATH"));
    await workbench.screenshot("codex not found");
    await toast("Codex was not found").getByRole("button", { name: "Choose Codex…" }).waitFor();
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "a session deleted while in view is reported, and not replaced", async () => {
    await row(/^Find out why/).click();
    await shows(
      workbench.checkpoint
        .getByText(`target ${long}`)
        .or(workbench.checkpoint.getByRole("treeitem", { name: /^Task, / })),
    );
    rmSync(fileOf(home, slow));
    await shows(workbench.checkpoint.getByText("The session in view was deleted."), 20_000);
    await workbench.checkpoint.getByText("· deleted").waitFor();
    assert.equal(await workbench.checkpoint.getByRole("treeitem").count(), 0);
    await workbench.screenshot("deleted in view");
    await workbench.checkpoint.getByText("Follow the Newest Session").click();
    await shows(workbench.checkpoint.getByRole("treeitem", { name: /^Task, / }));
  });
});
