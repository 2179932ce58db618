/** The page of a session: its picture, its turns by mouse and keyboard, and its live updates. */

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { barriers, inFront, isForEverybody } from "./pages.ts";
import { type Exchange, fileOf, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const WIDE = { width: 1400, height: 1000 };
const NARROW = { width: 400, height: 900 };

/** Make forty turns that fill the context three times. */
function turns(): readonly Exchange[] {
  let used = 12_000;
  return Array.from({ length: 39 }, (_, at): Exchange => {
    used += 9_000 + ((at * 7_919) % 12_000);
    const compacted = used > 215_000;
    const turn = {
      task: `Step ${at + 2}: make the price list faster`,
      commands: at % 3 === 0 ? [`sed -i s/${at}/x/ shop${at % 4}.py`] : ["make check"],
      exitCode: at % 5 === 4 ? 1 : 0,
      answer: "Done.",
      used,
      compacted,
    };
    used = compacted ? 11_000 : used;
    return turn;
  });
}

/** The first turn after a compaction. */
const COMPACTED = turns().findIndex(({ compacted }) => compacted) + 2;

test("a session page shows the whole session and opens each of its turns", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  const session = writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Cache the prices"],
    commands: ["cat shop.py"],
    answer: "Measured.",
    further: turns(),
  });
  lab.run("mark", session, "--turn", "12", "--label", "before the cache");
  const settings = { "codexCheckpoints.trace": "requests" };
  const workbench = await Workbench.open(t, lab, { size: WIDE, settings });
  const { page } = workbench;
  const front = inFront(page);
  const slider = front.getByRole("slider", { name: "Context by turn" });
  const turn = front.getByRole("region", { name: "The chosen turn" });
  const append = (message: string) => {
    const payload = { type: "user_message", message, images: [] };
    const line = { timestamp: new Date().toISOString(), type: "event_msg", payload };
    appendFileSync(fileOf(lab.codexHome, session), `${JSON.stringify(line)}\n`);
  };
  const pane = front.getByRole("region", { name: "Conversation" });
  const read = (number: number) =>
    pane
      .getByRole("article")
      .filter({ has: front.getByRole("heading", { name: `Turn ${number} ` }) });
  const chooseTurn = async (number: number) => {
    await slider.focus();
    await page.keyboard.press("Home");
    for (let at = 1; at < number; at++) {
      await page.keyboard.press("ArrowRight");
    }
  };
  await workbench.showCheckpoints();

  await step(
    t,
    "a click brings it into view and shows it at the newest turn, a double click keeps it",
    async () => {
      const row = workbench.sessions.getByRole("treeitem", {
        name: /price list faster|shop faster/,
      });
      await row.first().getByText("Make the shop faster").click();
      await workbench.checkpoint.getByRole("treeitem", { name: /^Plan/ }).waitFor();
      await turn.getByRole("heading", { name: "Turn 40" }).waitFor();
      await row.first().getByText("Make the shop faster").dblclick();
      await turn.getByRole("heading", { name: "Turn 40" }).waitFor();
      await read(40).getByText("Step 40: make the price list faster").waitFor();
      await front.getByRole("heading", { name: "Plan" }).waitFor();
    },
  );

  await step(t, "it fetches nothing, and requests its turns once", async () => {
    const asked = (name: string) => workbench.log.split(`checkpoints/${name} answered`).length - 1;
    // The list requests it too, together with the windows of an unfolded session.
    await becomes(() => asked("timeline") - asked("windows"), 1);
    const [fetched, policy] = await front.locator("head").evaluate(
      (head) =>
        [
          performance.getEntriesByType("resource").map(({ name }) => name),
          head
            .querySelector("meta[http-equiv]")
            ?.getAttribute("content")
            ?.replaceAll(/nonce-[\w-]+/g, "nonce"),
        ] as const,
    );
    assert.deepEqual(fetched, []);
    assert.equal(
      policy,
      "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'nonce'; script-src 'nonce'",
    );
  });

  await step(t, "it is accessible in each theme", () => isForEverybody(workbench, "session page"));

  await step(t, "the arrow keys move from turn to turn, and a click chooses one", async () => {
    await chooseTurn(12);
    await read(12).getByText("Marker “before the cache”.").waitFor();
    await front.getByRole("heading", { name: "Plan as of turn 12" }).waitFor();
    await front.getByRole("heading", { name: /^Changed files up to turn 12: \d of \d/ }).waitFor();
    assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /^Turn 12: Step 12/);
    const chart = await front.locator(".chart").boundingBox();
    assert.ok(chart !== null);
    await front.locator(".chart").click({ position: { x: chart.width - 4, y: 20 } });
    await turn.getByRole("heading", { name: "Turn 40" }).waitFor();
    await front.locator(".chart").hover({ position: { x: 6, y: 20 } });
    await front.getByText(/^Turn 1: Make the shop faster/).waitFor();
  });

  await step(t, "the conversation is in the first screen, below a strip that opens", async () => {
    const { top, bottom, strip, fits } = await pane.evaluate((each) => ({
      top: each.getBoundingClientRect().top,
      bottom: each.getBoundingClientRect().bottom,
      strip: document.querySelector(".chart")?.clientHeight,
      fits: window.scrollY === 0 && window.innerHeight,
    }));
    assert.equal(strip, 48);
    assert.ok(top < 300 && bottom <= Number(fits), `${top} to ${bottom} of ${fits}`);
    const picture = front.getByRole("button", { name: "Show Picture" });
    await picture.focus();
    await page.keyboard.press("Enter");
    await front.locator(".chart").getByText("145,350").waitFor();
    await isForEverybody(workbench, "session page with its picture");
    await front.locator(".chart").click({ position: { x: 70, y: 80 } });
    await turn.getByRole("heading", { name: "Turn 1", exact: true }).waitFor();
    await front.getByRole("button", { name: "Hide Picture" }).click();
    await page.keyboard.press("Tab");
  });

  await step(t, "a request is shown once: in the conversation, or above it", async () => {
    await chooseTurn(20);
    await read(20).getByText("Done.").waitFor();
    const request = turn.getByText("Step 20: make the price list faster");
    await request.waitFor({ state: "hidden" });
    const { top, height } = await turn.evaluate((each) => each.getBoundingClientRect());
    // Again if a part that arrived before the scroll was noticed brought the turn back.
    await becomes(async () => {
      await read(20)
        .locator(".step.user")
        .evaluate((each) => {
          const pane = each.closest(".pane");
          const { bottom } = each.getBoundingClientRect();
          pane?.scrollBy(0, bottom - pane.getBoundingClientRect().top + 4);
        });
      return await request.isVisible();
    }, true);
    await turn.getByRole("heading", { name: "Turn 20" }).waitFor();
    const now = await turn.evaluate((each) => each.getBoundingClientRect());
    assert.deepEqual([now.top, now.height], [top, height], "what one reads has not moved");
    await workbench.screenshot("session page within a turn");
  });

  await step(t, "the conversation of the chosen turn is below, with exit codes", async () => {
    await chooseTurn(6);
    const steps = read(6).getByRole("listitem");
    await steps.filter({ hasText: "Step 6: make the price list faster" }).waitFor();
    await steps.filter({ hasText: "make check" }).getByText("exit code 1").waitFor();
    await steps.filter({ hasText: "Done." }).waitFor();
    await isForEverybody(workbench, "conversation");
    await slider.focus();
    await page.keyboard.press("End");
  });

  await step(t, "a compaction lists its losses, in its turn and on a page", async () => {
    await chooseTurn(COMPACTED);
    const compacted = read(COMPACTED);
    await compacted.getByText(/^Compacted: a new context window begins · \d+ lost/).waitFor();
    await compacted.getByText("Open steps of the plan: Measure it").waitFor();
    await isForEverybody(workbench, "what a compaction lost");
    await front.getByRole("button", { name: "Lost in Compaction" }).first().click();
    await front.getByRole("heading", { name: "Lost in Compaction" }).waitFor();
    await workbench.closeTab();
  });

  await step(t, "a search finds in this session alone, and a hit opens its turn", async () => {
    const box = page.locator(".quick-input-widget:visible input.input");
    const { search } = workbench;
    await front.getByRole("button", { name: "Search in This Session…" }).focus();
    await page.keyboard.press("Enter");
    await box.fill("s/15/x");
    await search.getByText(/^“s\/15\/x” · in “.*” · 1 hit$/).waitFor();
    await page.keyboard.press("Enter");
    await search.locator(".monaco-list:focus-within .focused").getByText("s/15/x").waitFor();
    await page.keyboard.press("Enter");
    await turn.getByRole("heading", { name: "Turn 17" }).waitFor();
    const found = pane.getByRole("listitem").filter({ hasText: "s/15/x" });
    await found.waitFor();
    assert.equal(await found.evaluate((each) => each.contains(document.activeElement)), true);
    await workbench.command("Codex Checkpoints: Search in This Session…");
    await box.fill("frankincense");
    await search.getByText("no hits").waitFor();
    await page.keyboard.press("Escape");
    await workbench.command("Codex Checkpoints: Clear Search Results");
  });

  await step(t, "the transcript opens at the newest turn, with earlier turns above", async () => {
    await chooseTurn(3);
    await workbench.command("Codex Checkpoints: Open Transcript");
    await turn.getByRole("heading", { name: "Turn 40" }).waitFor();
    await front.locator(".pane:focus").waitFor();
    await read(40).getByText("Step 40: make the price list faster").waitFor();
    await read(36).waitFor();
    await workbench.screenshot("transcript");
  });

  await step(t, "it is scrolled by keyboard to its beginning and back, part by part", async () => {
    const seen = new Set<string>();
    const most = { turns: 0 };
    const readOn = async (key: string, last: string) => {
      await becomes(async () => {
        await page.keyboard.press(key);
        const names = await pane.getByRole("heading").allInnerTexts();
        for (const name of names) {
          seen.add(/^Turn \d+/.exec(name)?.[0] ?? name);
        }
        most.turns = Math.max(most.turns, names.length);
        return /^Turn \d+/.exec(await turn.getByRole("heading").first().innerText())?.[0];
      }, last);
    };
    await readOn("PageUp", "Turn 1");
    await readOn("PageDown", "Turn 40");
    assert.equal(seen.size, 40);
    assert.ok(most.turns < 40, `${most.turns} turns at once`);
    assert.equal(await pane.evaluate((each) => each === document.activeElement), true);
  });

  await step(t, "with reduced motion nothing is animated", async () => {
    const moving = await front.locator("body").evaluate(
      (body) =>
        [...body.querySelectorAll("*")].filter((each) => {
          const { animationDuration, transitionDuration, scrollBehavior } = getComputedStyle(each);
          const still = animationDuration === "0s" && transitionDuration === "0s";
          return !still || scrollBehavior === "smooth";
        }).length,
    );
    assert.equal(moving, 0);
  });

  await step(t, "its table says the same in words", async () => {
    await front.getByRole("heading", { name: "All turns" }).click();
    const rows = front.getByRole("table", { name: "All turns" }).getByRole("row");
    await rows.nth(40).waitFor();
    assert.equal(await rows.count(), 41);
    const cells = await rows.nth(12).getByRole("cell").allTextContents();
    assert.deepEqual([cells[0], cells.at(-1)], ["12", "Marker “before the cache”."]);
    assert.match(await rows.nth(COMPACTED).innerText(), /Compacted: a new context window begins/);
    for (const width of [1440, 1024]) {
      await page.setViewportSize({ width, height: 900 });
      const broken = await front.locator("#table").evaluate((table) => {
        const linesOf = (cell: Element) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
        };
        const cells = [...table.querySelectorAll<HTMLTableCellElement>("th, td")];
        return cells
          .filter((cell) => cell.offsetWidth > 0 && ![1, 9].includes(cell.cellIndex))
          .filter((cell) => linesOf(cell) > 1)
          .map(({ textContent }) => textContent);
      });
      assert.deepEqual(broken, [], `a word or a number is broken at ${width}`);
      const request = await rows.nth(12).getByRole("cell").nth(1).boundingBox();
      assert.ok((request?.width ?? 0) > 150, "the request has room");
      await front.getByRole("heading", { name: "All turns" }).scrollIntoViewIfNeeded();
      await workbench.screenshot(`all turns at ${width}`);
    }
    await page.setViewportSize(WIDE);
    await front.getByRole("heading", { name: "All turns" }).click();
  });

  await step(t, "it follows the session, and a chosen turn stays chosen", async () => {
    await slider.focus();
    await page.keyboard.press("Home");
    append("One more thing");
    await front.locator("main[data-ready='41']").waitFor();
    await turn.getByRole("heading", { name: /^Turn 1\b/ }).waitFor();
    assert.equal(await slider.evaluate((each) => each === document.activeElement), true);
    await page.keyboard.press("End");
    await read(41).getByText("One more thing").waitFor();
  });

  await step(t, "the visible text does not move while the session continues below", async () => {
    await workbench.command("Codex Checkpoints: Open Transcript");
    await read(41).getByText("One more thing").waitFor();
    await read(37).waitFor();
    const place = () => read(39).evaluate((each) => each.getBoundingClientRect().top);
    await page.keyboard.press("PageUp");
    let before = 0;
    let still = 0;
    await becomes(async () => {
      const last = before;
      before = await place();
      still = last === before ? still + 1 : 0;
      return still > 4; // the key scrolls for a while, on a busy machine with pauses
    }, true);
    append("And the last one");
    await read(42).getByText("And the last one").waitFor();
    assert.ok(Math.abs((await place()) - before) < 1, `${before}, ${await place()}`);
    assert.equal(await pane.evaluate((each) => each === document.activeElement), true);
  });

  await step(t, "its lineage is a picture, and each session in it opens", async () => {
    const [marker] = lab.run("marks", session) as { checkpointId: string }[];
    assert.ok(marker !== undefined);
    for (const mode of ["soft", "hard"]) {
      lab.run("restore", session, marker.checkpointId, "--mode", mode);
    }
    const lineage = front.locator(".lineage");
    await lineage.getByRole("listitem").nth(2).waitFor();
    await lineage.scrollIntoViewIfNeeded();
    await isForEverybody(workbench, "lineage of a session");
    await lineage.getByRole("button").first().click();
    await page
      .getByRole("tab", { name: /before the cache/ })
      .first()
      .waitFor();
    await inFront(page).locator(".lineage").getByText("this session").waitFor();
    await workbench.closeTab();
  });

  await step(t, "a turn is restored by keyboard alone", async () => {
    await slider.focus();
    await page.keyboard.press("Home");
    const restore = turn.getByRole("button", { name: "Restore from Here…" });
    await restore.focus();
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-widget:visible input").waitFor();
    await page.keyboard.press("Enter");
    await inFront(page)
      .getByText("Size limit of the pack")
      .or(inFront(page).getByText("Restore “"))
      .first()
      .waitFor();
    await workbench.closeTab();
  });

  await step(t, "in a window of 1024 pixels the figures of a turn are whole", async () => {
    await page.setViewportSize({ width: 1024, height: 768 });
    for (const number of [6, COMPACTED]) {
      await chooseTurn(number);
      const cut = await front
        .locator(".turn .did, .strip .pointed")
        .evaluateAll((lines) =>
          lines
            .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
            .map(({ textContent }) => textContent),
        );
      assert.deepEqual(cut, []);
    }
    await workbench.screenshot("session page at 1024");
  });

  await step(t, "beside an open panel the conversation has nearly half of the page", async () => {
    await shows(workbench.part("panel"));
    const share = () =>
      pane.evaluate((each) => {
        const { top, bottom } = each.getBoundingClientRect();
        return (Math.min(bottom, window.innerHeight) - top) / window.innerHeight;
      });
    await becomes(async () => (await share()) > 0.45, true);
    await workbench.screenshot("session page beside a panel");
    assert.deepEqual(await barriers(page), []);
  });

  await step(t, "it is accessible in a narrow window", async () => {
    await page.setViewportSize(NARROW);
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await turn.waitFor();
    await workbench.screenshot("session page narrow");
    assert.deepEqual(await barriers(page), []);
  });
});
