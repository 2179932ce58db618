/** Takes the screenshots for the walkthrough and the README from the demo in a real workbench. */

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { shows, Workbench } from "./workbench.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const WALKTHROUGH = join(ROOT, "extension", "media", "walkthrough");
const WINDOW = { width: 1200, height: 720 };

test("pictures of the walkthrough and of the README", async (t) => {
  const lab = new Lab();
  const python = join(ROOT, ".venv", "bin", "python");
  execFileSync(python, [join(ROOT, "tools", "demo.py"), lab.codexHome, lab.project]);
  const [{ sessionId }] = lab.run("sessions");
  const workbench = await Workbench.open(t, lab, {
    environment: { CODEX_CHECKPOINTS_OPEN: sessionId },
    size: WINDOW,
  });
  const { page } = workbench;
  const front = inFront(page);
  const picker = page.locator(".quick-input-widget:visible");
  mkdirSync(WALKTHROUGH, { recursive: true });
  const takeAs = (path: (colours: string) => string) =>
    inEachTheme(workbench, async (colours) => {
      if (!colours.includes("contrast")) {
        await page.screenshot({ path: path(colours), scale: "css" });
      }
    });
  const take = (name: string) => takeAs((colours) => join(WALKTHROUGH, `${name}-${colours}.png`));

  // The first webview of a new profile is slow.
  const heading = front.getByRole("heading", { name: /^Let the reader take the price lists/ });
  await heading.first().waitFor({ timeout: 30_000 });
  // The messages and the rows of the side bar come later.
  await shows(front.getByRole("region", { name: "Conversation" }).locator(".step"));
  await shows(workbench.sessions.getByRole("treeitem", { name: /^Let the reader take/ }));
  await shows(workbench.checkpoint.getByRole("treeitem"));
  await take("read");
  await page.setViewportSize({ width: 1400, height: 1000 });
  await takeAs((colours) =>
    join(ROOT, "docs", colours === "dark" ? "editor-dark.png" : "editor.png"),
  );
  await page.setViewportSize(WINDOW);

  await workbench.command("Codex Checkpoints: Search Sessions…");
  await picker.locator("input").first().fill("Decimal");
  await page.keyboard.press("Enter");
  await shows(workbench.search.getByRole("treeitem").first());
  await take("search");

  await workbench.command("View: Toggle Panel Visibility");
  // The last turn of the session in view is still open.
  const branch = workbench.sessions.getByRole("treeitem", { name: /^nine suppliers work/ });
  await workbench.menu(branch, "Compact Session…");
  await shows(front.getByText("Afterwards"));
  await take("compact");

  await workbench.command("Codex Checkpoints: Restore from Marker…");
  await picker.getByText("nine suppliers work").first().click();
  await shows(front.getByRole("heading", { name: /^Restore “nine suppliers work”/ }));
  await take("go-back");
});
