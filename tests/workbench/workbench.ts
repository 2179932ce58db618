/**
 * The packaged extension in a real workbench (VS Code in the browser) in a real browser.
 * `Workbench.open(test, lab)` starts the workbench with the VSIX and opens the lab's project;
 * everything is closed when the test ends, and a failed test leaves a screenshot and the logs in
 * `artifacts`. With a shared lab, the server and the browser are reused by the next test of the
 * process, which gets a window without stored state. Everything waits for a condition, with a
 * timeout; nothing relies on a duration.
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

/** A host name without the port, so that the browser treats all workbenches as the same site. */
const HOST = "workbench.localhost";
const ORIGIN = `http://${HOST}`;

export const EXTENSION = "codex-checkpoints.codex-checkpoints";
export const VSIX = process.env.VSIX ?? "";

/** Timeout of starting; generous, for a busy machine. */
const READY_MS = 120_000;
/** Timeout of opening something by a key or a click; after that, it has probably closed again. */
const OPEN_MS = 10_000;
/** Number of attempts to open something that closed by itself. */
const TRIES = 5;

/** The settings of `settings.json`, and those that make screenshots reproducible. */
const SETTINGS = {
  ...JSON.parse(readFileSync(join(HERE, "settings.json"), "utf8")),
  "workbench.reduceMotion": "on",
  "workbench.colorTheme": "Light 2026",
  "editor.cursorBlinking": "solid",
  "files.autoSave": "off",
};

export interface Options {
  /** Settings of this machine, mostly the extension's. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Environment variables beyond the lab's. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The size of the window in pixels. */
  readonly size?: { readonly width: number; readonly height: number };
  /** Ask for trust as VS Code does by default: the folder then opens in Restricted Mode. */
  readonly untrusted?: boolean;
  /** Load all built-in extensions, as people do; otherwise only those that the tests use. */
  readonly whole?: boolean;
}

/** The built-in extensions that the tests use; all of them take a sixth of a window's start. */
const BUILT_IN = [
  ...["configuration-editing", "diff", "git", "git-base", "json", "markdown-basics", "python"],
  ...["shellscript", "theme-defaults", "theme-seti"],
];

/**
 * The time limit of a visible effect, for a machine where a workbench opens in `OPENED_MS`; 3.4 to
 * 4.8 s on an idle machine.
 */
const AT_ONCE_MS = 2_000;
const OPENED_MS = 4_000;
/** How long the last workbench took to open, which measures the machine and its load. */
let opened = 0;

/** Return the time limit of a visible effect; `time` is the limit on an idle machine. */
export function atOnce(time = AT_ONCE_MS): number {
  const [load = 0] = loadavg();
  return time * Math.max(1, load / availableParallelism(), opened / OPENED_MS);
}

/** Wait until something is visible. */
export async function shows(what: Locator, within = atOnce()): Promise<void> {
  await what.first().waitFor({ timeout: within });
}

/** Run a step; retry if it times out, since a menu or a list may have closed by itself. */
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

/** Click a button and then a choice in its list, which closes when a page that opens takes focus. */
export async function chosen(button: Locator, choice: Locator): Promise<void> {
  await again(async (timeout) => {
    await button.click({ timeout });
    await choice.click({ timeout });
  });
}

/** Run one step of a test; the report has its title and its time. */
export async function step(test: TestContext, says: string, run: () => Promise<void>) {
  const start = performance.now();
  try {
    await run();
  } catch (error) {
    throw new Error(`not so: ${says}`, { cause: error });
  }
  test.diagnostic(`${says} (${Math.round(performance.now() - start)} ms)`);
}

/** A server and a browser for one lab. */
interface Machine {
  readonly server: Child;
  readonly browser: BrowserContext;
  readonly page: Page;
  /** Stop the server and the browser, and remove their files. */
  readonly end: () => Promise<void>;
}

/** The machine of the shared lab, if it is running. */
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
      const { passed } = test as TestContext & { passed: boolean }; // missing in its types
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

  /** Reset for the next test: close windows, stop our servers, and clear stored state. */
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

  /** Take a screenshot of the window. */
  async screenshot(name: string): Promise<void> {
    mkdirSync(ARTIFACTS, { recursive: true });
    await this.page.screenshot({ path: join(ARTIFACTS, `${slug(name)}.png`) });
  }

  /** Return the extension's log since the window was last opened. */
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
      // A click on the tab of a visible side bar hides it, and a new window may show it by itself.
      if (!(await this.sessions.isVisible())) {
        await tab.click();
      }
      await this.sessions.waitFor({ timeout });
    });
  }

  /** Show the side bar, and wait until the server answers. */
  async showCheckpoints(): Promise<void> {
    await this.showView();
    await this.status
      .and(this.page.getByLabel(/no session here|session (running|in view)/))
      .waitFor();
  }

  /** Kill the extension's server repeatedly, until it is not restarted any more. */
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

  /** Return the view of all sessions. */
  get sessions(): Locator {
    return this.#view("Sessions");
  }

  /** Return the view of a search. */
  get search(): Locator {
    return this.part("panel");
  }

  /** Return the view of the checkpoint. */
  get checkpoint(): Locator {
    return this.#view("Checkpoint");
  }

  /** Return the view of the connection between Codex and us. */
  get connection(): Locator {
    return this.#view("Connection");
  }

  #view(name: string): Locator {
    // The label includes the description beside the name.
    const header = this.page.locator(`.pane-header[aria-label^="${name} "]`);
    return this.page.locator(".pane").filter({ has: header });
  }

  /** Return the editor of one of our documents, or of a file. */
  editor(address: string): Locator {
    return this.page.locator(`.monaco-editor[data-uri*="${address}"]`);
  }

  part(name: "sidebar" | "editor" | "panel" | "statusbar" | "activitybar"): Locator {
    return this.page.locator(`[id="workbench.parts.${name}"]`);
  }

  /**
   * Run a command by its title, from the palette.
   * A palette closes when it loses the focus, and the previous action may still be moving the focus
   * (a closing terminal, a folding panel): then a user opens it again, and so does this.
   */
  async command(title: string): Promise<void> {
    const open = this.page.locator(".quick-input-widget:visible");
    const input = open.locator('input[placeholder^="Type the name of a command"]');
    const row = open.locator(".monaco-list-row").filter({ hasText: title }).first();
    await again(async (timeout) => {
      // An open palette lists the commands that applied when it opened.
      if (await open.isVisible()) {
        await this.page.keyboard.press("Escape");
      }
      await this.page.keyboard.press("F1");
      await input.fill(`>${title}`, { timeout });
      await row.click({ timeout });
      // The next question uses the same box.
      await input.waitFor({ state: "hidden", timeout });
    });
  }

  /** Answer a file or folder dialog; `button` is its label. */
  async file(path: string, button = "OK"): Promise<void> {
    const dialog = this.page.locator(".quick-input-widget:visible");
    const input = dialog.locator("input").first();
    // Once the folder is listed, the dialog proposes a path, which would replace ours.
    await dialog.getByRole("option", { name: "..", exact: true }).waitFor();
    await input.fill(path);
    assert.equal(await input.inputValue(), path);
    // The dialog ignores clicks while it checks the path.
    await again(async (timeout) => {
      await dialog.getByRole("button", { name: button }).click({ timeout });
      await dialog.waitFor({ state: "hidden", timeout });
    });
  }

  /**
   * Choose an entry of a context menu, or of its submenu `within`. The menu closes when its row is
   * redrawn; if the entry opens something, wait for that.
   */
  async menu(
    place: Locator,
    entry: string,
    opens?: Locator,
    within?: "Show" | "Copy and Share",
  ): Promise<void> {
    const item = this.page.getByRole("menuitem", { name: entry });
    await again(async (timeout, attempt) => {
      if (attempt > 1) {
        await this.page.keyboard.press("Escape");
      }
      await place.click({ button: "right", timeout });
      if (within !== undefined) {
        const submenu = this.page.getByRole("menuitem", { name: within, exact: true });
        await submenu.hover({ timeout });
        await item.waitFor({ timeout });
      }
      // A menu ignores the first click right after it opens, as it may be part of the opening
      // click.
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

  /** Check whether a menu command was refused because its row had just been redrawn. */
  async #changedMeanwhile(opens: Locator | undefined, timeout: number): Promise<boolean> {
    const toast = this.page
      .locator(".notification-toast")
      .filter({ hasText: "the list was updated as you chose" });
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

  /** Press a button that a row shows on hover. */
  async button(row: Locator, name: string): Promise<void> {
    await again(async (timeout) => {
      await row.hover({ timeout });
      await row.getByRole("button", { name }).click({ timeout });
    });
  }

  /** Close the tab in front, and wait until it is gone, since closing moves the focus. */
  async closeTab(): Promise<void> {
    const tabs = this.page.locator(".tabs-container .tab");
    const left = (await tabs.count()) - 1;
    // A page that is still loading would lose the key press.
    await this.command("View: Close Editor");
    await becomes(() => tabs.count(), left);
  }

  /** Save an edited file. */
  async save(name: string): Promise<void> {
    const unsaved = this.page.locator(`.tab.dirty[data-resource-name="${name}"]`);
    await unsaved.waitFor();
    await this.page.keyboard.press("Control+S");
    await unsaved.waitFor({ state: "detached" });
  }

  /** Change the colour theme, by its name in the picker; `kind` is its class on the page. */
  async theme(name: string, kind: string): Promise<void> {
    await this.command("Preferences: Color Theme");
    const picker = this.page.locator(".quick-input-widget:visible");
    await picker.locator("input").first().fill(name);
    await picker.locator(".monaco-list-row").filter({ hasText: name }).first().click();
    await picker.waitFor({ state: "hidden" });
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  /**
   * Click a link in an editor until its target opens: a line that is redrawn under the pointer
   * loses its link for a moment.
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
   * Reload the window after the workbench has saved its tabs: it saves every five seconds while its
   * document has the focus, but not on unload.
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

/**
 * Prefix of the databases in which VS Code in the browser stores its own and the extensions' state.
 */
const KEPT = "vscode-web-state-db-";

/** Read a stored value by its key. */
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

/** Start the server and the browser, without a page of ours yet. */
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
 * Return an extensions folder with our package, installed by the workbench itself, once per
 * package.
 * Its Python is compiled ahead, so that tests do not measure the compilation of a first start.
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

/** Create a folder atomically; a parallel process may have created the same one. */
function publish(folder: string, make: (made: string) => void): void {
  const made = `${folder}-${process.pid}`;
  make(made);
  try {
    renameSync(made, folder);
  } catch {
    rmSync(made, { recursive: true });
  }
}

/** The browser's caches of workbench files: fetched and compiled. */
const CACHES = ["Cache", "Code Cache"].map((name) => join("Default", name));
/** The browser caches compiled code at the second use. */
const USES = 2;

/** Give a new browser the caches of earlier ones; return how often those were used. */
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

/** Keep the caches of a browser that has exited, unless equal ones are kept already. */
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

/** Start the workbench with the extension, on a free port of this machine. */
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

/** Return the path of this machine's browser. */
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
