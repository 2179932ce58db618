/** The pages of a restore are accessible: by keyboard, at any width, in any theme. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { barriers, type Focus, inEachTheme, inFront, isForEverybody, tabThrough } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { shows, step, Workbench } from "./workbench.ts";

const [SOFT, HARD] = ["Continue with context", "Reset context for performance"];
const [WIDE, NARROW] = [
  { width: 1500, height: 1000 },
  { width: 760, height: 1000 },
];

/** The minimum contrast of a sign in WCAG. */
const STANDS_OUT = 3;

function allSeen(stopped: readonly Focus[], where: string): void {
  const unseen = stopped.filter(({ ring }) => ring < STANDS_OUT);
  assert.deepEqual(unseen, [], `a focus that is not seen, in ${where}`);
}

test("the pages of a restore are accessible to everybody", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  lab.write("a file with quite a long name, as there are some.py", "price = 2\n");
  const session = writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Cache the prices"],
    commands: ["cat shop.py", "cat 'a file with quite a long name, as there are some.py'"],
    answer: "Measured.",
  });
  lab.run("mark", session, "--label", "before the cache");
  lab.run("pin", session, "shop.py");
  const workbench = await Workbench.open(t, lab, { size: WIDE });
  const { page } = workbench;
  const front = inFront(page);
  const slider = front.getByRole("slider", { name: "Size limit of the pack" });
  await workbench.showCheckpoints();
  await workbench.command("Codex Checkpoints: Restore from Marker");
  await page.locator(".quick-input-widget:visible .monaco-list-row").first().click();
  await front.getByText("What the new session keeps").waitFor();

  await step(t, "the check finds a planted barrier", async () => {
    const quiet = front.locator(".quiet:visible").first();
    await quiet.evaluate((place) => {
      place.style.color = "#999";
    });
    assert.match((await barriers(page)).join("\n"), /^color-contrast: .*2\.8/);
    await quiet.evaluate((place) => place.removeAttribute("style"));
  });

  await step(t, "the preview of a soft restore", () =>
    isForEverybody(workbench, "restore preview soft"),
  );

  await step(t, "the preview of a hard restore, with omitted items", async () => {
    await front.getByRole("radio", { name: HARD }).check();
    await slider.focus();
    await page.keyboard.press("End");
    await front.locator("#outcome").getByText("All of them fit.").waitFor();
    await page.keyboard.press("PageDown");
    await page.keyboard.press("PageDown");
    await front
      .getByRole("heading", { name: /^Left out to stay within the size limit \(/ })
      .waitFor();
    await isForEverybody(workbench, "restore preview hard");
  });

  await step(
    t,
    "Tab moves through it from the top to the buttons, with a visible ring",
    async () => {
      await inEachTheme(workbench, async (colours) => {
        await front.getByRole("radio", { name: HARD }).focus();
        const stopped = await tabThrough(page, 8);
        assert.deepEqual(
          stopped.map(({ name }) => name),
          [
            HARD,
            "Size limit of the pack",
            "Budget in tokens",
            "Your last messages (0 to 5)",
            "Digest, in tokens (0 to 32,000)",
            "Reason",
            "Restore",
            "Cancel",
          ],
        );
        allSeen(stopped, colours);
      });
    },
  );

  await step(t, "the arrow keys change the mode and its form", async () => {
    await front.getByRole("radio", { name: HARD }).focus();
    await page.keyboard.press("ArrowUp");
    await front.getByText("What the new session keeps").waitFor();
    const [first, second, third] = await tabThrough(page, 4);
    assert.deepEqual([first?.name, second?.name, third?.name], [SOFT, "Reason", "Restore"]);
    await front.getByRole("radio", { name: SOFT }).focus();
    await page.keyboard.press("ArrowDown");
    await slider.waitFor();
  });

  await step(t, "it is accessible in a narrow window", async () => {
    await page.setViewportSize(NARROW);
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await workbench.screenshot("restore preview narrow");
    assert.deepEqual(await barriers(page), []);
    await page.setViewportSize(WIDE);
    await workbench.command("View: Toggle Primary Side Bar Visibility");
  });

  await step(t, "Enter on the button restores; the details are completely unfolded", async () => {
    await front.getByRole("button", { name: "Restore", exact: true }).focus();
    await page.keyboard.press("Enter");
    const notice = page.locator(".notification-list-item").filter({ hasText: "Restored “" });
    await notice.getByRole("button", { name: "Details" }).click();
    await front.getByRole("heading", { name: "Restored “before the cache”" }).waitFor();
    await shows(
      workbench.sessions.getByRole("treeitem", {
        name: /^before the cache: Make the shop faster, /,
      }),
    );
    const folded = front.locator("details:not([open]) > summary");
    for (let left = await folded.count(); left > 0; left--) {
      await folded.first().click();
    }
    await isForEverybody(workbench, "restore details unfolded");
  });

  await step(t, "Tab moves through the details, with a visible ring", async () => {
    await inEachTheme(workbench, async (colours) => {
      await front.getByRole("button", { name: "Resume in Terminal" }).focus();
      const stopped = await tabThrough(page, 8);
      assert.deepEqual(
        stopped.map(({ name }) => name),
        [
          "Resume in Terminal",
          "Restore Again…",
          "Copy as Text",
          "Where it came from",
          "Make the shop faster",
          "before the cache: Make the shop faster",
          "Lineage (2)",
          "before the cache: Make the shop faster",
        ],
      );
      allSeen(stopped, colours);
    });
  });

  await step(t, "in a narrow window, they scroll by keyboard too", async () => {
    await page.setViewportSize(NARROW);
    await workbench.screenshot("restore details narrow");
    assert.deepEqual(await barriers(page), []);
  });
});
