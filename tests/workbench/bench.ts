/**
 * Measures how long people wait in the editor: from the second click of a double click to the
 * painted picture of a session page, from the click on the side bar to the painted list of a new
 * home, and from the last key of a search to its first painted hit. `make bench-editor` runs it;
 * the machine must be idle.
 */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { Workbench } from "./workbench.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const [OPENINGS, LISTS, SEARCHES] = [12, 4, 8];

/** Fill the lab with sessions of `bytes` in total, all of its project. */
function fill(lab: Lab, files: number, bytes: string): void {
  const make = [join(ROOT, "bench/make_tree.py"), "--image-rate", "0", "--out", lab.codexHome];
  const some = ["--files", String(files), "--bytes", bytes, "--form", "paginated"];
  execFileSync(join(ROOT, ".venv/bin/python"), [...make, ...some]);
  const root = join(lab.codexHome, "sessions");
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".jsonl")) {
      const path = join(root, name);
      const text = readFileSync(path, "latin1"); // byte for byte
      const { cwd } = JSON.parse(text.slice(0, text.indexOf("\n"))).payload;
      writeFileSync(path, text.replaceAll(cwd, lab.project), "latin1"); // the project in each turn
    }
  }
}

/**
 * Add another extension with a row that opens an empty page: the editor's own share of the time.
 */
function addEmptyPage(lab: Lab): void {
  const name = "empty-page";
  const version = "0.0.1";
  const manifest = {
    ...{ name, version, publisher: "bench", main: "main.js", engines: { vscode: "^1.90.0" } },
    activationEvents: ["onStartupFinished"],
    contributes: { views: { explorer: [{ id: "bench.rows", name: "Bench" }] } },
  };
  const main = `
const vscode = require("vscode");
exports.activate = () => {
  vscode.commands.registerCommand("bench.open", () => {
    const panel = vscode.window.createWebviewPanel("bench.page", "Empty", -1, { enableScripts: true });
    panel.webview.html = '<!DOCTYPE html><div class="chart"><svg><path d="M0 0h9"/></svg></div>';
  });
  vscode.window.registerTreeDataProvider("bench.rows", {
    getChildren: () => ["An empty page"],
    getTreeItem: (label) => ({ label, command: { command: "bench.open", title: label } }),
  });
};`;
  const folder = join(lab.extensions, `bench.${name}-${version}`);
  lab.writeIn(folder, "package.json", JSON.stringify(manifest));
  lab.writeIn(folder, "main.js", main);
  const list = join(lab.extensions, "extensions.json");
  const location = { $mid: 1, path: folder, scheme: "file" };
  const entry = { identifier: { id: `bench.${name}` }, version, location };
  const own = { ...entry, relativeLocation: `bench.${name}-${version}` };
  writeFileSync(list, JSON.stringify([...JSON.parse(readFileSync(list, "utf8")), own]));
}

/** Runs in each frame: log clicks and key presses, and when pictures, rows and hits are painted. */
function tellTimes(): void {
  const tell = (what: string, at = performance.now()) =>
    console.log(`at ${what} ${Math.round(performance.timeOrigin + at)}`);
  document.addEventListener("mousedown", (event) => tell("click", event.timeStamp), true);
  document.addEventListener("keydown", (event) => tell("key", event.timeStamp), true);
  const afterPaint = (what: string) =>
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => tell(what);
      port2.postMessage(0);
    });
  // The page is written into a nested frame once the webview has loaded.
  const look = () => {
    const shown = document.querySelector<HTMLIFrameElement>("#active-frame")?.contentDocument;
    if (shown?.querySelector(".chart path, .chart rect")) {
      afterPaint("picture");
    } else {
      requestAnimationFrame(look);
    }
  };
  const lookForRows = () => {
    const header = document.querySelector('.pane-header[aria-label^="Sessions "]');
    if (header?.closest(".pane")?.querySelector('[role="treeitem"][aria-level="2"]')) {
      afterPaint("rows");
    } else {
      requestAnimationFrame(lookForRows);
    }
  };
  const lookForHits = () => {
    const hit = document.querySelector('.part.panel [role="treeitem"][aria-level="2"]');
    if (hit === null) {
      isHit = false;
    } else if (!isHit) {
      isHit = true;
      afterPaint("hits");
    }
    requestAnimationFrame(lookForHits);
  };
  let isHit = false;
  if (window.top === window) {
    requestAnimationFrame(lookForRows);
    requestAnimationFrame(lookForHits);
  } else {
    requestAnimationFrame(look);
  }
}

/** Collect the times that `tellTimes` logs: the newest for each word. */
async function clock(page: Page): Promise<Map<string, number>> {
  const times = new Map<string, number>();
  page.on("console", (message) => {
    const [, what, time] = /^at (\w+) (\d+)/.exec(message.text()) ?? [];
    what === undefined || times.set(what, Number(time));
  });
  await page.addInitScript(tellTimes);
  return times;
}

function report(t: TestContext, what: string, times: number[]): void {
  const sorted = times.toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)];
  t.diagnostic(`${what}: median ${median} ms of ${sorted.join(" ")}`);
}

test("a session page opens", { timeout: 600_000 }, async (t) => {
  const lab = new Lab();
  lab.write("a.txt", "");
  fill(lab, 1, "100M");
  writeSession(lab.codexHome, {
    task: "Small one",
    cwd: lab.project,
    answer: "Done.",
    further: [{ task: "Go on", answer: "Done." }],
  });
  const workbench = await Workbench.open(t, lab, { whole: true });
  const { page } = workbench;
  addEmptyPage(lab);
  const times = await clock(page);
  await page.reload();
  await workbench.showCheckpoints();
  const rows = workbench.sessions.locator('[role="treeitem"][aria-level="2"]');
  await becomes(() => rows.count(), 2);
  const small = rows.filter({ hasText: "Small one" }).getByText("Small one");
  const large = rows.filter({ hasNotText: "Small one" }).locator(".label-name").first();
  const explorer = page.getByRole("tab", { name: /^Explorer/ });
  const header = page.locator('.pane-header[aria-label^="Bench"]');
  const empty = page.getByRole("treeitem", { name: "An empty page" });
  const waited = { small: [] as number[], large: [] as number[], empty: [] as number[] };
  for (let opening = -1; opening < OPENINGS; opening++) {
    for (const name of ["small", "large", "empty"] as const) {
      times.clear();
      if (name === "empty") {
        await explorer.click();
        await header.waitFor();
        if (!(await empty.isVisible())) {
          await header.click();
        }
        await empty.click();
      } else {
        await workbench.showView();
        await { small, large }[name].dblclick();
      }
      await inFront(page)
        .locator(".chart path, .chart rect")
        .first()
        .waitFor({ state: "attached" });
      await becomes(() => times.has("picture"), true);
      const time = (times.get("picture") ?? 0) - (times.get("click") ?? 0);
      opening < 0 || waited[name].push(time); // the first one reads the session
      await page.waitForTimeout(1_500);
      await workbench.command("View: Close All Editors");
      await page.waitForTimeout(500);
    }
  }
  report(t, "of 100 MB", waited.large);
  report(t, "of two turns", waited.small);
  report(t, "an empty page of another extension", waited.empty);
});

for (const [files, bytes] of [
  [276, "300M"],
  [5_000, "1100M"],
] as const) {
  test(`a list of ${files} shows`, { timeout: 600_000 }, async (t) => {
    const lab = new Lab();
    lab.write("a.txt", "");
    fill(lab, files, bytes);
    const workbench = await Workbench.open(t, lab, { whole: true });
    const { page } = workbench;
    const times = await clock(page);
    const waitedFor = () => (times.get("rows") ?? 0) - (times.get("click") ?? 0);
    const tab = page.getByRole("tab", { name: "Codex Checkpoints", exact: true });
    const explorer = page.getByRole("tab", { name: /^Explorer/ });
    const waited = { early: [] as number[], later: [] as number[], whole: [] as number[] };
    for (let opening = 0; opening < 2 * LISTS; opening++) {
      const when = opening % 2 === 0 ? "early" : "later";
      await explorer.click();
      await page.goto("about:blank");
      await lab.server(0);
      rmSync(join(lab.codexHome, "codex-checkpoints"), { recursive: true, force: true });
      await page.goBack();
      await (when === "early" ? tab : workbench.status).waitFor({ timeout: 60_000 });
      times.clear();
      const start = performance.now();
      await tab.click();
      await becomes(() => times.has("rows"), true);
      waited[when].push(waitedFor());
      await becomes(() => workbench.log.includes("index: current"), true);
      waited.whole.push(Math.round(performance.now() - start));
    }
    await workbench.screenshot(`a list of ${files}`);
    report(t, `rows of ${files}, a click while the window still loads`, waited.early);
    report(t, `rows of ${files}, a click once the extension has started`, waited.later);
    report(t, `all ${files} looked at`, waited.whole);
  });
}

test("a search of 276 shows its first hit", { timeout: 600_000 }, async (t) => {
  const lab = new Lab();
  lab.write("a.txt", "");
  fill(lab, 276, "300M");
  const answer = "Behind the paternoster.";
  writeSession(lab.codexHome, { task: "Where?", cwd: lab.project, age: 1e6, answer });
  const workbench = await Workbench.open(t, lab, { whole: true });
  const { page, search } = workbench;
  const times = await clock(page);
  await page.reload();
  await workbench.showCheckpoints();
  await becomes(() => workbench.log.includes("index: current"), true);
  const words = { invoice: "a word of all sessions", paternoster: "a word of the oldest alone" };
  for (const [word, about] of Object.entries(words)) {
    const [first, whole]: [number[], number[]] = [[], []];
    for (let searched = -1; searched < SEARCHES; searched++) {
      await workbench.command("Codex Checkpoints: Search Sessions…");
      await page.locator(".quick-input-title").getByText("Search Sessions").waitFor();
      times.clear();
      await page.keyboard.type(word);
      const start = performance.now();
      await becomes(() => times.has("hits"), true);
      await search.getByText(/ hits? in \d+ sessions?(, the newest)?$/).waitFor();
      if (searched >= 0) {
        first.push((times.get("hits") ?? 0) - (times.get("key") ?? 0)); // fills the caches
        whole.push(Math.round(performance.now() - start));
      }
      await page.keyboard.press("Escape");
      await workbench.command("Codex Checkpoints: Clear Search Results");
      await search.getByRole("treeitem").first().waitFor({ state: "detached" });
    }
    report(t, `the first hit of ${about}`, first);
    report(t, `all hits of ${about}`, whole);
  }
});
