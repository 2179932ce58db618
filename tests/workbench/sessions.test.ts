/** What a person does with a session in the list: names it, puts it away, takes it out again. */

import { test } from "node:test";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { shows, step, Workbench } from "./workbench.ts";

test("a session is named, put away and taken out again from its menu", async (t) => {
  const lab = new Lab();
  writeSession(lab.codexHome, { task: "Fix the login", cwd: lab.project, age: 5 });
  writeSession(lab.codexHome, { task: "Tidy the docs", cwd: lab.project, age: 9 });
  writeSession(lab.codexHome, { task: "Something else", cwd: "/elsewhere", age: 1 });
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const row = (name: string) => workbench.sessions.getByRole("treeitem", { name });
  const menu = (name: string, entry: string) => workbench.menu(row(name), entry);
  await workbench.showCheckpoints();
  await row("Fix the login").waitFor();

  await step(t, "other folders' sessions are left to their own group", async () => {
    await row("Other Folders").locator(".monaco-tl-twistie").click();
    await row("elsewhere").locator(".monaco-tl-twistie").click();
    await row("Something else").waitFor();
  });

  await step(t, "its name stands in the list and is found by a search", async () => {
    await menu("Fix the login", "Rename Session…");
    const input = page.locator(".quick-input-widget:visible input[type=text]").first();
    await input.fill("Login, the \u202enasty one");
    await page.keyboard.press("Enter");
    await workbench.command("Codex Checkpoints: Find Session by Name…");
    await input.fill("nasty one");
    await page.keyboard.press("Enter");
    await shows(row("Login, the nasty one"));
    await row("Tidy the docs").waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(row("Tidy the docs"));
  });

  await step(t, "an archived session leaves the list, and comes back", async () => {
    await menu("Tidy the docs", "Archive Session");
    await row("Tidy the docs").waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Filter Sessions…");
    const picker = page.locator(".quick-input-widget:visible");
    await picker.locator(".monaco-list-row").filter({ hasText: "Archived sessions" }).click();
    await picker.getByRole("button", { name: "OK" }).click();
    await shows(row("Tidy the docs"));
    await row("Login, the nasty one").waitFor({ state: "hidden" });
    await workbench.screenshot("archived sessions");
    await menu("Tidy the docs", "Unarchive Session");
    await row("Tidy the docs").waitFor({ state: "hidden" });
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(row("Tidy the docs"));
  });
});
