/** Codex is connected and disconnected from the editor; the real Codex grants the trust. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { Child } from "./children.ts";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const CODEX = join(import.meta.dirname, "..", "codex", "node_modules", ".bin");

/** Codex answers from another process, which it has to start. */
const CODEX_MS = 30_000;

const CONFIG = '# my own\nmodel = "gpt-5.5"\n\n[features]\nhooks = true # said by hand\n';

test("codex is connected after a look at every line, and disconnected without a trace", async (t) => {
  const lab = new Lab();
  // The setup of people who keep their configuration files elsewhere and link them.
  const config = join(lab.codexHome, "config.toml");
  const kept = join(lab.codexHome, "..", "kept");
  mkdirSync(kept, { recursive: true });
  renameSync(lab.writeIn(lab.codexHome, "config.toml", CONFIG), join(kept, "config.toml"));
  symlinkSync(join(kept, "config.toml"), config);
  const workbench = await Workbench.open(t, lab, {
    environment: { PATH: [CODEX, process.env.PATH].join(delimiter) },
    size: { width: 1400, height: 900 },
  });
  const { page, connection } = workbench;
  const row = (name: string | RegExp) => connection.getByRole("treeitem", { name });
  const shown = inFront(page);
  const button = (name: string) => shown.getByRole("button", { name, exact: true });
  const notice = page
    .locator(".notification-list-item")
    .filter({ hasText: "Codex looks for Codex Checkpoints where it no longer is" });
  await workbench.showCheckpoints();
  await connection.locator(".pane-header").click();

  await step(t, "nothing is connected, and nothing is asked for", async () => {
    await shows(row(/^Hooks, not connected/), CODEX_MS);
    await shows(row(/^Memory tools, not connected/));
    assert.equal(readFileSync(config, "utf8"), CONFIG);
  });

  await step(t, "the changes are previewed, and declining writes nothing", async () => {
    await workbench.button(row(/^Hooks/), "Connect Codex…");
    await shown.getByText("These are all the lines that change.").waitFor();
    await shown.getByText("mcp_servers").first().waitFor();
    await workbench.screenshot("connect asks");
    await button("Cancel").click();
    await page.locator("iframe.webview.ready:visible").waitFor({ state: "detached" });
    assert.equal(readFileSync(config, "utf8"), CONFIG);
  });

  await step(t, "agreeing writes them, and Codex reports that it waits for trust", async () => {
    await workbench.command("Codex Checkpoints: Connect Codex…");
    await button("Connect").click();
    await shows(row(/^Hooks, waiting for you to trust it/), CODEX_MS);
    await shows(row(/^Memory tools, connected/));
    const written = readFileSync(config, "utf8");
    assert.ok(written.startsWith(CONFIG.trimEnd()), written);
    assert.match(written, /\[mcp_servers\./);
    await shows(page.getByText("Codex calls a hook only when you trust it."));
    await row(/^Hooks/)
      .locator(".monaco-tl-twistie")
      .click();
    await shows(row(/^SessionStart, not trusted yet/));
    await workbench.screenshot("connection");
  });

  await step(t, "trust granted elsewhere is noticed without a refresh", async () => {
    const untrusted = readFileSync(config, "utf8");
    await trust(lab);
    await shows(row(/^SessionStart, trusted/), CODEX_MS);
    await shows(row(/^Hooks, connected/));
    await workbench.screenshot("connection trusted");
    writeFileSync(config, untrusted);
    await shows(row(/^Hooks, waiting for you to trust it/), CODEX_MS);
  });

  await step(t, "disconnecting restores the original file", async () => {
    await page.keyboard.press("Escape");
    await workbench.command("Codex Checkpoints: Disconnect Codex…");
    await button("Disconnect").click();
    await shows(row(/^Hooks, not connected/), CODEX_MS);
    assert.equal(readFileSync(config, "utf8"), CONFIG);
  });

  await step(t, "the walkthrough links to all of it", async () => {
    await workbench.command("Welcome: Open Walkthrough...");
    const picker = page.locator(".quick-input-widget:visible");
    await picker.locator("input").first().fill("Codex Checkpoints");
    await picker.getByText("Get Started with Codex Checkpoints").first().click();
    await page.getByText("Compact a long session").first().click();
    await page
      .getByRole("button", { name: /Connect Codex/ })
      .first()
      .waitFor();
    await page.getByAltText("The preview of a compaction").waitFor();
    await workbench.screenshot("walkthrough");
  });

  await step(t, "a connection broken by an update is reported without a request", async () => {
    const gone = join(lab.root, "gone", "bundled", "launch.py");
    const args = JSON.stringify(["-I", "-S", gone, "mcp"]);
    const cut = `[mcp_servers.codex-checkpoints]\ncommand = "/usr/bin/python3"\nargs = ${args}\n`;
    writeFileSync(config, cut);
    await page.reload();
    await notice.waitFor();
    await workbench.screenshot("connection cut");
    assert.equal(readFileSync(config, "utf8"), cut);
  });

  await step(t, "connecting again repairs it", async () => {
    // The window may come back with a preview that was closed just before; the walkthrough that
    // came back has frames of its own.
    const previews = page.getByRole("tab", { name: "Changes to Codex's Configuration" });
    const before = await previews.count();
    await notice.getByRole("button", { name: "Connect Again…" }).click();
    await becomes(() => previews.count(), before + 1);
    await button("Connect").click();
    await becomes(() => previews.count(), before);
    await shows(page.getByText("Codex calls a hook only when you trust it."), CODEX_MS);
    assert.doesNotMatch(readFileSync(config, "utf8"), /gone/);
  });
});

/** Trust all hooks, as Codex does after the user agrees. */
async function trust(lab: Lab): Promise<void> {
  const codex = new Child([join(CODEX, "codex"), "app-server"], {
    cwd: lab.project,
    env: { ...lab.environment(), PATH: process.env.PATH },
  });
  const ask = async (id: number, method: string, params: object) => {
    codex.send(JSON.stringify({ id, method, params }));
    const [answer] = await codex.prints(new RegExp(`^\\{"id":${id},.*$`, "m"), CODEX_MS);
    return JSON.parse(answer).result;
  };
  const clientInfo = { name: "test", title: null, version: "1" };
  await ask(1, "initialize", { clientInfo, capabilities: null });
  codex.send(JSON.stringify({ method: "initialized" }));
  const { data } = await ask(2, "hooks/list", { cwds: [lab.project] });
  const hooks: { key: string; currentHash: string }[] = data[0].hooks;
  const value = Object.fromEntries(hooks.map((h) => [h.key, { trusted_hash: h.currentHash }]));
  const edits = [{ keyPath: "hooks.state", value, mergeStrategy: "upsert" }];
  await ask(3, "config/batchWrite", { edits, reloadUserConfig: true });
  await codex.end();
}
