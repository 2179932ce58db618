/**
 * The packaged extension in a real workbench (VS Code in the browser) in a real browser.
 *
 * `Workbench.open(test, lab)` starts the workbench with the VSIX and opens the lab's project;
 * the test's end closes it all, and a failed test leaves a screenshot and the logs in `artifacts`.
 * Where the lab is shared, server and browser go on for the next test of the process, which gets a
 * window that remembers nothing.
 * Everything waits for a sign, with a limit; nothing relies on how long something takes.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { delimiter, join } from "node:path";
import { after, type TestContext } from "node:test";
import { type BrowserContext, chromium, errors, type Locator, type Page } from "playwright-core";
import { Child } from "./children.ts";
import { Lab } from "./lab.ts";
import { becomes, STEP_MS } from "./waiting.ts";

const HERE = import.meta.dirname;
const ROOT = join(HERE, "..", "..");
const NODE = join(HERE, "node_modules", ".node24", "node");
const CODE_SERVER = join(HERE, "node_modules", "code-server", "out", "node", "entry.js");
const ALL_BUILT_IN = join(HERE, "node_modules", "code-server", "lib", "vscode", "extensions");
export const ARTIFACTS = join(ROOT, "build", "workbench");

/** A name, and no port, in the address of a workbench: the next one is the same to a browser. */
const HOST = "workbench.localhost";
const ORIGIN = `http://${HOST}`;

export const EXTENSION = "codex-checkpoints.codex-checkpoints";
export const VSIX = process.env.VSIX ?? "";

/** So long nothing takes, be the machine as busy as it may. */
const READY_MS = 120_000;
/** So long what opens on a key or a click takes; what takes longer has closed again. */
const OPEN_MS = 10_000;
/** So often a person opens again what closed under the hand. */
const TRIES = 5;

/** Those of `settings.json`, and what makes two pictures alike. */
const SETTINGS = {
  ...JSON.parse(readFileSync(join(HERE, "settings.json"), "utf8")),
  "workbench.reduceMotion": "on",
  "workbench.colorTheme": "Light 2026",
  "editor.cursorBlinking": "solid",
  "files.autoSave": "off",
};

export interface Options {
  /** Settings of this machine, of the extension for the most part. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Environment beyond the lab's. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Of the window, in pixels. */
  readonly size?: { readonly width: number; readonly height: number };
  /** Ask for trust as VS Code does by default: the folder then opens in Restricted Mode. */
  readonly untrusted?: boolean;
  /** Have all extensions that come with VS Code, as people do; else those that tests look at. */
  readonly whole?: boolean;
}

/** Those that tests look at; loading all of them is a sixth of what a window costs. */
const BUILT_IN = [
  ...["configuration-editing", "diff", "git", "git-base", "json", "markdown-basics", "python"],
  ...["shellscript", "theme-defaults", "theme-seti"],
];

/** What happened must show so soon where a workbench opens in the other time: 3.4 to 4.8 s at rest. */
const AT_ONCE_MS = 2_000;
const OPENED_MS = 4_000;
/** How long the last workbench took to open, as a measure of the machine and of its other work. */
let opened = 0;

/** The time in which something must show here and now; `time` is that of a machine at rest. */
export function atOnce(time = AT_ONCE_MS): number {
  const [load = 0] = loadavg();
  return time * Math.max(1, load / availableParallelism(), opened / OPENED_MS);
}

/** Wait until something is there to be seen. */
export async function shows(what: Locator, within = atOnce()): Promise<void> {
  await what.first().waitFor({ timeout: within });
}

/** Do what something that closes by itself may cut short, again where it did. */
export async function again(
  run: (timeout: number, attempt: number) => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await run(attempt === TRIES ? STEP_MS : OPEN_MS, attempt);
      return;
    } catch (error) {
      if (attempt === TRIES || !(error instanceof errors.TimeoutError)) {
        throw error;
      }
    }
  }
}

/** One step of a test, with its sentence and its time in the report. */
export async function step(test: TestContext, says: string, run: () => Promise<void>) {
  const start = performance.now();
  try {
    await run();
  } catch (error) {
    throw new Error(`not so: ${says}`, { cause: error });
  }
  test.diagnostic(`${says} (${Math.round(performance.now() - start)} ms)`);
}

/** A server and a browser that show one lab. */
interface Machine {
  readonly server: Child;
  readonly browser: BrowserContext;
  readonly page: Page;
  /** Server and browser end, and nothing of them is left. */
  readonly end: () => Promise<void>;
}

/** The machine of the shared lab, while there is one. */
let shared: Machine | undefined;
after(() => shared?.end());

export class Workbench {
  readonly lab: Lab;
  readonly page: Page;
  readonly #name: string;
  readonly #machine: Machine;
  readonly #console: string[] = [];

  private constructor(name: string, lab: Lab, machine: Machine) {
    this.#name = name;
    this.lab = lab;
    this.#machine = machine;
    this.page = machine.page;
    this.page.on("console", (message) => {
      this.#console.push(`${message.type()}: ${message.text()}`);
    });
    this.page.on("pageerror", (error) => this.#console.push(`uncaught: ${error}`));
  }

  static async open(test: TestContext, lab: Lab, options: Options = {}): Promise<Workbench> {
    assert(existsSync(VSIX), "VSIX must name the packaged extension: run this by `make e2e`");
    const began = performance.now();
    const machine = (lab.isShared ? shared : undefined) ?? (await start(lab, options));
    const { page } = machine;
    shared = lab.isShared ? machine : shared;
    const workbench = new Workbench(slug(test.name), lab, machine);
    test.after(async () => {
      const { passed } = test as TestContext & { passed: boolean }; // newer than its types
      await workbench.#close(passed);
    });
    lab.writeIn(lab.userData, "User/settings.json", JSON.stringify(SETTINGS));
    lab.writeIn(lab.userData, "Machine/settings.json", JSON.stringify(options.settings ?? {}));
    await page.setViewportSize(options.size ?? { width: 1280, height: 800 });
    const begun = performance.now();
    test.diagnostic(`workbench and browser started (${Math.round(begun - began)} ms)`);
    await page.goto(`${ORIGIN}/?folder=${encodeURI(lab.project)}`, { timeout: READY_MS });
    await page.locator(".monaco-workbench .part.statusbar").waitFor({ timeout: READY_MS });
    opened = performance.now() - begun;
    test.diagnostic(`window open (${Math.round(opened)} ms)`);
    return workbench;
  }

  async #close(passed: boolean): Promise<void> {
    let goesOn = false;
    try {
      if (!passed) {
        await this.#dump();
      } else if (this.lab.isShared) {
        await this.#empty();
        goesOn = true;
      }
    } finally {
      if (!goesOn) {
        shared = this.lab.isShared ? undefined : shared;
        await this.#machine.end();
      }
    }
  }

  /** Leave nothing to the next test: no window, no server of ours, nothing that either keeps. */
  async #empty(): Promise<void> {
    const { browser } = this.#machine;
    await this.page.goto("about:blank");
    for (const event of ["console", "pageerror"] as const) {
      this.page.removeAllListeners(event);
    }
    await browser.clearPermissions();
    const storage = { origin: ORIGIN, storageTypes: "indexeddb,local_storage" };
    const session = await browser.newCDPSession(this.page);
    await session.send("Storage.clearDataForOrigin", storage);
    await session.detach();
    await this.lab.server(0);
    this.lab.empty();
  }

  async #dump(): Promise<void> {
    const folder = join(ARTIFACTS, this.#name);
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, "at-the-end.png") }).catch(() => undefined);
    const text = await this.page.locator("body").innerText().catch(String);
    writeFileSync(join(folder, "page.txt"), text);
    writeFileSync(join(folder, "console.txt"), this.#console.join("\n"));
    writeFileSync(join(folder, "server.txt"), this.#machine.server.output);
    const logs = join(this.lab.userData, "logs");
    if (existsSync(logs)) {
      cpSync(logs, join(folder, "logs"), { recursive: true });
    }
    console.log(`# what was there at the end: ${folder}`);
  }

  /** Take a picture of the window. */
  async screenshot(name: string): Promise<void> {
    mkdirSync(ARTIFACTS, { recursive: true });
    await this.page.screenshot({ path: join(ARTIFACTS, `${slug(name)}.png`) });
  }

  /** What the extension has written into its log since the window was opened last. */
  get log(): string {
    const logs = join(this.lab.userData, "logs");
    const names = readdirSync(logs, { recursive: true, encoding: "utf8" });
    const [last = ""] = names
      .filter((name) => name.endsWith("Codex Checkpoints.log"))
      .sort((one, other) => other.localeCompare(one, "en", { numeric: true }));
    return readFileSync(join(logs, last), "utf8");
  }

  /** The extension's item in the status bar. */
  get status(): Locator {
    return this.page.locator(`[id="${EXTENSION}.codexCheckpoints.status"]`);
  }

  /** Show the extension's side bar. */
  async showView(): Promise<void> {
    const tab = this.page.getByRole("tab", { name: "Codex Checkpoints", exact: true });
    await again(async (timeout) => {
      // It hides a side bar that is there, and one may come by itself in a window that starts.
      if (!(await this.sessions.isVisible())) {
        await tab.click();
      }
      await this.sessions.waitFor({ timeout });
    });
  }

  /** Show it, and wait until the server answers. */
  async showCheckpoints(): Promise<void> {
    await this.showView();
    await this.status
      .and(this.page.getByLabel(/no session here|session (running|in view)/))
      .waitFor();
  }

  /** Kill the extension's server each time that it runs, until it is not started again. */
  async killServers(): Promise<void> {
    const runs = this.status.and(this.page.getByLabel(/no session here|session (running|in view)/));
    const stopped = this.status.and(this.page.getByLabel("The server has stopped"));
    await runs.or(stopped).waitFor();
    while (!(await stopped.isVisible())) {
      for (const server of this.lab.servers()) {
        process.kill(server, "SIGKILL");
      }
      await runs.waitFor({ state: "hidden" });
      await runs.or(stopped).waitFor();
    }
  }

  /** The view of all sessions. */
  get sessions(): Locator {
    return this.#view("Sessions");
  }

  /** The view of a search. */
  get search(): Locator {
    return this.part("panel");
  }

  /** The view of one checkpoint. */
  get checkpoint(): Locator {
    return this.#view("Checkpoint");
  }

  /** The view of how Codex and we are connected. */
  get connection(): Locator {
    return this.#view("Connection");
  }

  #view(name: string): Locator {
    // What is shown beside the name is part of the label.
    const header = this.page.locator(`.pane-header[aria-label^="${name} "]`);
    return this.page.locator(".pane").filter({ has: header });
  }

  /** A document of ours, or a file, in an editor. */
  editor(address: string): Locator {
    return this.page.locator(`.monaco-editor[data-uri*="${address}"]`);
  }

  part(name: "sidebar" | "editor" | "panel" | "statusbar" | "activitybar"): Locator {
    return this.page.locator(`[id="workbench.parts.${name}"]`);
  }

  /**
   * Run a command by its title, from the palette.
   *
   * A palette closes when the focus leaves it, and what ran before may still be moving the focus
   * (a terminal that ends, a panel that folds): then a user opens it again, and so does this.
   */
  async command(title: string): Promise<void> {
    const open = this.page.locator(".quick-input-widget:visible");
    const input = open.locator('input[placeholder^="Type the name of a command"]');
    const row = open.locator(".monaco-list-row").filter({ hasText: title }).first();
    await again(async (timeout) => {
      // What an open list offers is as of its opening, and the command may not have applied then.
      if (await open.isVisible()) {
        await this.page.keyboard.press("Escape");
      }
      await this.page.keyboard.press("F1");
      await input.fill(`>${title}`, { timeout });
      await row.click({ timeout });
      // What is asked next is asked in the same place.
      await input.waitFor({ state: "hidden", timeout });
    });
  }

  /** Answer a dialog that asks for a file or a folder; `button` is its label. */
  async file(path: string, button = "OK"): Promise<void> {
    const dialog = this.page.locator(".quick-input-widget:visible");
    const input = dialog.locator("input").first();
    // Its own proposal comes when the folder is listed, and would come over ours.
    await dialog.getByRole("option", { name: "..", exact: true }).waitFor();
    await input.fill(path);
    assert.equal(await input.inputValue(), path);
    // While the dialog still looks at the path it lets a click pass.
    await again(async (timeout) => {
      await dialog.getByRole("button", { name: button }).click({ timeout });
      await dialog.waitFor({ state: "hidden", timeout });
    });
  }

  /**
   * Choose an entry of the menu that a right click opens; it closes when its row is drawn again.
   * Where the entry opens something, wait for that.
   */
  async menu(place: Locator, entry: string, opens?: Locator): Promise<void> {
    const item = this.page.getByRole("menuitem", { name: entry });
    await again(async (timeout, attempt) => {
      if (attempt > 1) {
        await this.page.keyboard.press("Escape");
      }
      await place.click({ button: "right", timeout });
      // A menu that has just opened lets the first click pass, as it may belong to the opening one.
      for (let clicks = 0; clicks < TRIES; clicks++) {
        await item.click({ timeout });
        const gone = await item.waitFor({ state: "detached", timeout: 2_000 }).then(
          () => true,
          () => false,
        );
        if (gone && !(await this.#changedMeanwhile(opens, timeout))) {
          return;
        }
        if (gone) {
          break;
        }
      }
      throw new errors.TimeoutError(`the menu does not take ${entry}`);
    });
  }

  /** Whether a command from a menu was refused because its row was just drawn again. */
  async #changedMeanwhile(opens: Locator | undefined, timeout: number): Promise<boolean> {
    const toast = this.page.locator(".notification-toast").filter({ hasText: "has just changed" });
    try {
      await (opens?.or(toast) ?? toast).first().waitFor({ timeout: opens ? timeout : 150 });
    } catch (error) {
      if (opens !== undefined) {
        throw error;
      }
    }
    if (!(await toast.first().isVisible())) {
      return false;
    }
    await this.command("Notifications: Clear All Notifications");
    return true;
  }

  /** Press a button that a row has while the pointer is over it. */
  async button(row: Locator, name: string): Promise<void> {
    await again(async (timeout) => {
      await row.hover({ timeout });
      await row.getByRole("button", { name }).click({ timeout });
    });
  }

  /** Close the tab in front, and wait until it is gone: what comes then takes the focus. */
  async closeTab(): Promise<void> {
    const tabs = this.page.locator(".tabs-container .tab");
    const left = (await tabs.count()) - 1;
    // In a page that is still being made a key would be lost.
    await this.command("View: Close Editor");
    await becomes(() => tabs.count(), left);
  }

  /** Save the file that was typed into. */
  async save(name: string): Promise<void> {
    const unsaved = this.page.locator(`.tab.dirty[data-resource-name="${name}"]`);
    await unsaved.waitFor();
    await this.page.keyboard.press("Control+S");
    await unsaved.waitFor({ state: "detached" });
  }

  /** Change the colour theme, by the name that the picker gives it; `kind` is its class on the page. */
  async theme(name: string, kind: string): Promise<void> {
    await this.command("Preferences: Color Theme");
    const picker = this.page.locator(".quick-input-widget:visible");
    await picker.locator("input").first().fill(name);
    await picker.locator(".monaco-list-row").filter({ hasText: name }).first().click();
    await picker.waitFor({ state: "hidden" });
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  /**
   * Press a link of an editor, until what it leads to is there: a line is drawn again under the
   * pointer, so that a link is gone between two looks at it.
   */
  async follow(line: Locator, arrives: Locator): Promise<void> {
    const { keyboard, mouse } = this.page;
    await again(async (timeout) => {
      const box = await line.locator(".detected-link").first().boundingBox({ timeout });
      if (box !== null) {
        await keyboard.down("ControlOrMeta");
        await mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 2 });
        await mouse.down();
        await mouse.up();
        await keyboard.up("ControlOrMeta");
      }
      await arrives.waitFor({ timeout });
    });
  }

  /**
   * Reload the window once the workbench has saved that a tab is there: it saves every five seconds
   * while its document has the focus, and does not when it goes.
   */
  async reload(title: string): Promise<void> {
    await becomes(async () => {
      const names = await this.page.evaluate(async () =>
        (await indexedDB.databases()).map(({ name = "" }) => name),
      );
      const kept = names.filter((name) => name.startsWith(KEPT));
      const tabs = kept.map((name) =>
        stored(this.page, name.slice(KEPT.length), "memento/workbench.parts.editor"),
      );
      return (await Promise.all(tabs)).some((text) => text.includes(title));
    }, true);
    await this.page.reload();
  }
}

/** How the databases begin in which VS Code in the browser keeps what it and extensions remember. */
const KEPT = "vscode-web-state-db-";

/** What is remembered under a key. */
function stored(page: Page, database: string, key: string): Promise<string> {
  return page.evaluate(
    ([name, kept]) =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const table = opening.result
            .transaction("ItemTable", "readonly")
            .objectStore("ItemTable");
          const reading = table.get(kept);
          let text = "";
          reading.onsuccess = () => {
            text = String(reading.result ?? "");
          };
          table.transaction.oncomplete = () => {
            opening.result.close();
            resolve(text);
          };
        };
      }),
    [`${KEPT}${database}`, key] as const,
  );
}

/** Start server and browser, without a page of ours yet. */
async function start(lab: Lab, options: Options): Promise<Machine> {
  const folder = await installed();
  const used = useCaches(lab, folder);
  const { child: server, port } = await serve(lab, options);
  const browser = await browse(lab, port).catch(async (error: unknown) => {
    await server.end();
    throw error;
  });
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.setDefaultTimeout(STEP_MS);
  const end = async () => {
    await Promise.all([browser.close(), server.end()]);
    keepCaches(lab, folder, used + 1);
    lab.remove();
  };
  return { server, browser, page, end };
}

async function browse(lab: Lab, port: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(lab.profile, {
    executablePath: browserPath(),
    headless: true,
    reducedMotion: "reduce",
    colorScheme: "light",
    locale: "en-US",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--host-resolver-rules=MAP ${HOST} 127.0.0.1:${port}`,
    ],
  });
}

/**
 * The folder of extensions with ours in it, installed by the workbench itself, once for a package.
 *
 * Its Python is compiled: what a first start takes longer is not measured again in each test.
 */
async function installed(): Promise<string> {
  const { mtimeMs, size } = statSync(VSIX);
  const folder = join(ROOT, "build", "installed", `${Math.round(mtimeMs)}-${size}`);
  if (!existsSync(folder)) {
    const lab = new Lab();
    const config = lab.writeIn(lab.userData, "config.yaml", "auth: none\ncert: false\n");
    const where = ["--user-data-dir", lab.userData, "--extensions-dir", lab.extensions];
    const command = [NODE, CODE_SERVER, "--config", config, ...where];
    const child = new Child([...command, "--install-extension", VSIX], { env: lab.environment() });
    const code = await child.ends(READY_MS);
    await child.end();
    assert.equal(code, 0, child.output);
    execFileSync("python3", ["-I", "-m", "compileall", "-q", lab.extensions]);
    publish(folder, (made) =>
      cpSync(lab.extensions, made, { recursive: true, preserveTimestamps: true }),
    );
    lab.remove();
  }
  return folder;
}

/** Make a folder whole; who makes it at the same time, in another process, makes the same. */
function publish(folder: string, make: (made: string) => void): void {
  const made = `${folder}-${process.pid}`;
  make(made);
  try {
    renameSync(made, folder);
  } catch {
    rmSync(made, { recursive: true });
  }
}

/** What a browser keeps of the files of a workbench: as they were fetched, and compiled. */
const CACHES = ["Cache", "Code Cache"].map((name) => join("Default", name));
/** It compiles for the next time what it meets a second time. */
const USES = 2;

/** Give a new browser what those before it kept; return of how many uses it is. */
function useCaches(lab: Lab, folder: string): number {
  let uses = USES;
  while (uses > 0 && !existsSync(`${folder}-used-${uses}`)) {
    uses -= 1;
  }
  if (uses > 0) {
    cpSync(`${folder}-used-${uses}`, lab.profile, { recursive: true });
  }
  return uses;
}

/** Keep what a browser that has ended knows, unless as much is already kept. */
function keepCaches(lab: Lab, folder: string, uses: number): void {
  const kept = `${folder}-used-${uses}`;
  if (uses <= USES && !existsSync(kept)) {
    publish(kept, (made) => {
      for (const cache of CACHES) {
        cpSync(join(lab.profile, cache), join(made, cache), { recursive: true });
      }
    });
  }
}

/** Start the workbench, with the extension in it, on a free port of this machine. */
async function serve(lab: Lab, options: Options): Promise<{ child: Child; port: string }> {
  const chosen = join(lab.root, "bi");
  mkdirSync(chosen);
  for (const name of BUILT_IN) {
    symlinkSync(join(ALL_BUILT_IN, name), join(chosen, name));
  }
  const config = lab.writeIn(lab.userData, "config.yaml", "auth: none\ncert: false\n");
  cpSync(await installed(), lab.extensions, { recursive: true, preserveTimestamps: true });
  const child = new Child(
    [
      ...[NODE, CODE_SERVER, "--config", config],
      ...["--user-data-dir", lab.userData, "--extensions-dir", lab.extensions],
      ...["--bind-addr", "127.0.0.1:0"],
      ...(options.whole ? [] : ["--builtin-extensions-dir", chosen]),
      "--disable-telemetry",
      "--disable-update-check",
      "--disable-getting-started-override",
      "--disable-proxy",
      ...["--reconnection-grace-time", "1"],
      ...(options.untrusted ? [] : ["--disable-workspace-trust"]),
    ],
    { env: { ...lab.environment(), ...options.environment } },
  );
  try {
    const [, port] = await child.prints(/listening on http:\S+:(\d+)\/?\s/, READY_MS);
    return { child, port: port as string };
  } catch (error) {
    await child.end();
    throw error;
  }
}

/** The browser of this machine. */
function browserPath(): string {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const found = names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
  assert(found, `a browser is needed: ${names.join(", ")} (Debian: apt-get install chromium)`);
  return found;
}

export function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}
