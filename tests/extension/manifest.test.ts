import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { contextValueOf } from "../../extension/src/sessions/model/rows.ts";
import { session } from "./values.ts";

const text = (path: string) => readFileSync(path, "utf8");
const manifest = JSON.parse(text("package.json"));
const sources = readdirSync("extension/src", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => text(join("extension/src", path)));
/** Commands that the editor itself defines. */
const OF_THE_EDITOR = new Set(["workbench.trust.manage", "codexCheckpoints.sessions.focus"]);

const commands: { command: string; title: string }[] = manifest.contributes.commands;

interface Item {
  readonly command?: string;
  readonly submenu?: string;
  readonly when?: string;
  readonly group: string;
}

const menus: Readonly<Record<string, readonly Item[]>> = manifest.contributes.menus;
const PREFIX = "codexCheckpoints.";

/** Check a condition of a menu about a row, which is a conjunction. */
function holds({ when = "" }: Item, view: string, row: string): boolean {
  return when.split(" && ").every((part) => {
    const [, key, operator, wanted = ""] = /^(\S+) (==|=~) (.*)$/.exec(part) ?? [];
    const value = key === "viewItem" ? row : `${PREFIX}${view}`;
    return operator === "=~"
      ? new RegExp(wanted.slice(1, -1)).test(value)
      : part === "" || wanted.replaceAll("'", "") === value;
  });
}

/** The entries of a menu about a row in their order, by groups, without icons on the row. */
function shown(menu: string, view: string, row: string): string[][] {
  const groups = new Map<string, [number, string][]>();
  for (const item of (menus[menu] ?? []).filter((each) => holds(each, view, row))) {
    const [group = "", at] = item.group.split("@");
    const name = (item.command ?? item.submenu ?? "").replace(PREFIX, "");
    groups.set(group, [...(groups.get(group) ?? []), [Number(at), name]]);
  }
  groups.delete("inline");
  const rank = (group: string) => (group === "navigation" ? "" : group);
  return [...groups]
    .sort(([one], [other]) => (rank(one) < rank(other) ? -1 : 1))
    .map(([, names]) => names.sort(([one], [other]) => one - other).map(([, name]) => name));
}

const MENU = "view/item/context";
const SUBMENUS = ["showSession", "shareSession"];

/** The context value of a row with each combination of words. */
function sessionRows(): string[] {
  return Array.from({ length: 2 ** 6 }, (_, bits) => {
    const has = (at: number) => Math.floor(bits / 2 ** at) % 2 === 1;
    return contextValueOf(
      session({
        archived: has(0),
        madeBy: has(1) ? "restore" : null,
        refused: has(2) ? "a line of its file is not UTF-8" : null,
        forkedFrom: has(3) ? "another" : null,
        branches: has(4) ? 1 : 0,
        markers: has(5) ? 1 : 0,
      }),
    );
  });
}

test("each command of the manifest is registered, and the reverse", () => {
  const tables = sources.map(
    (source) => /\): Commands \{\n.*?return \{\n(.*?)\n {2}\};/s.exec(source)?.[1] ?? "",
  );
  const registered = [...tables.join("\n").matchAll(/^ {4}(\w+):/gm)].map(([, name]) => name);

  assert.deepEqual(
    registered.sort(),
    commands.map(({ command }) => command.replace("codexCheckpoints.", "")).sort(),
  );
});

test("conditions about the row of a session hold for a branch as well", () => {
  // The context value of its row has several words: `session made branch`.
  const whole = JSON.stringify(manifest.contributes.menus);
  assert.doesNotMatch(whole, /viewItem == (?:session|archivedSession)\b/);
  assert.doesNotMatch(whole, /archivedSession\)\$/);
});

test("the menu of a session shows the common actions, and the others in submenus", () => {
  const row = contextValueOf(session({}));
  assert.deepEqual(shown(MENU, "sessions", row), [
    ["openSessionPage", "resumeSession"],
    ["compactSession", "restoreFiles", "addMarker"],
    ["showSession", "shareSession"],
    ["renameSession", "archiveSession"],
  ]);
  const branch = session({ madeBy: "restore", forkedFrom: "another", branches: 1, markers: 1 });
  assert.deepEqual(shown(MENU, "sessions", contextValueOf(branch)).flat().slice(0, 4), [
    ...["openSessionPage", "resumeSession", "compactSession", "restoreMarker"],
  ]);
  for (const each of sessionRows()) {
    const entries = shown(MENU, "sessions", each).flat();
    assert.ok(entries.length <= 11, `${each}: ${entries}`);
    assert.equal(new Set(entries).size, entries.length, each);
  }
});

test("each submenu has a label and entries, and is in a menu", () => {
  const submenus: { id: string; label: string }[] = manifest.contributes.submenus;
  assert.deepEqual(
    submenus.map(({ id }) => id),
    SUBMENUS.map((name) => `${PREFIX}${name}`),
  );
  for (const { id, label } of submenus) {
    assert.match(label, /^[A-Z]/);
    assert.ok(menus[MENU]?.some(({ submenu }) => submenu === id));
    for (const row of sessionRows()) {
      assert.ok(shown(id, "sessions", row).flat().length > 2, `${id}: ${row}`);
    }
  }
});

test("an action that does not apply to a session is not in its menu", () => {
  const entries = (some: Parameters<typeof session>[0]) => {
    const row = contextValueOf(session(some));
    return [MENU, ...SUBMENUS.map((name) => `${PREFIX}${name}`)].flatMap((menu) =>
      shown(menu, "sessions", row).flat(),
    );
  };
  const lacks = (some: Parameters<typeof session>[0], ...names: string[]) =>
    names.filter((name) => entries(some).includes(name));

  const never = ["unarchiveSession", "restoreMarker", "goToSource", "goToBranches", "deleteBranch"];
  assert.deepEqual(lacks({}, ...never), []);
  const archived = ["archiveSession", "resumeSession", "compactSession"];
  assert.deepEqual(lacks({ archived: true }, ...archived), []);
  assert.deepEqual(lacks({ refused: "damaged" }, "resumeSession"), []);
  const all = { forkedFrom: "another", madeBy: "restore", branches: 1, markers: 1 } as const;
  assert.deepEqual(
    ["restoreMarker", "goToSource", "goToBranches", "deleteBranch"].filter(
      (name) => !entries(all).includes(name),
    ),
    [],
  );
});

test("every action of a session's menu is in the palette as well", () => {
  const { commandPalette = [] } = menus;
  const palette = new Map(commandPalette.map(({ command, when }) => [command, when]));
  const rows = sessionRows();
  const named = [MENU, ...SUBMENUS.map((name) => `${PREFIX}${name}`)].flatMap((menu) =>
    rows.flatMap((row) => shown(menu, "sessions", row).flat()),
  );
  const hidden = [...new Set(named)].filter((name) => palette.get(`${PREFIX}${name}`) === "false");

  assert.ok(named.includes("openTranscript"));
  assert.deepEqual(hidden, []);
});

test("a row of a session has no icons, so that name, age and meter keep their room", () => {
  const items: { when: string; group: string }[] = manifest.contributes.menus["view/item/context"];
  const icons = items.filter(
    ({ when, group }) => group.startsWith("inline") && /\/\^\(session\|archived/.test(when),
  );

  assert.deepEqual(icons, []);
});

test("menus, shortcuts and welcome texts name existing commands", () => {
  const known = new Set(commands.map(({ command }) => command));
  const inMenus = Object.values(menus).flatMap((items) => items.filter(({ command }) => command));
  const inTexts = [...JSON.stringify(manifest).matchAll(/\(command:([\w.]+)\)/g)].map(
    ([, name]) => name,
  );
  const keys: { command: string }[] = manifest.contributes.keybindings;
  const named = [...[...inMenus, ...keys].map(({ command }) => command), ...inTexts];

  assert.deepEqual(
    named.filter((name) => !known.has(name ?? "") && !OF_THE_EDITOR.has(name ?? "")),
    [],
  );
});

test("each shortcut is documented", () => {
  const page = text("docs/reference.md");
  const keys: { key: string }[] = manifest.contributes.keybindings;
  for (const { key } of keys) {
    assert.ok(page.toLowerCase().includes(key), key);
  }
});

test("each empty view has a sentence with a next step", () => {
  const welcome: { contents: string; when: string }[] = manifest.contributes.viewsWelcome;
  const textOf = (when: RegExp) => welcome.find((each) => when.test(each.when))?.contents ?? "";

  for (const when of [
    /noFolder/,
    /noSessions/,
    /== archived/,
    /filtered/,
    /== stopped/,
    /== noPython/,
  ]) {
    assert.match(textOf(when), /\(command:/, `${when}`);
  }
  assert.match(textOf(/codexCheckpoints\.restricted/), /\(command:workbench\.trust\.manage\)/);
  assert.match(textOf(/== indexing/), /\w/);
});

test("each step of the walkthrough has its picture, and a button", () => {
  const [walkthrough] = manifest.contributes.walkthroughs;
  for (const { id, media, description } of walkthrough.steps) {
    for (const picture of ["dark", "light", "hc", "hcLight"]) {
      const begin = readFileSync(media.image[picture]).subarray(1, 4);
      assert.equal(begin.toString("latin1"), "PNG", `${id} ${picture}`);
    }
    assert.match(description, /\(command:\w/, id);
    assert.match(media.altText, /\w/, id);
  }
});

test("the walkthrough explains a session, a checkpoint and both restores", () => {
  // AGN-70: four ideas.
  const whole = JSON.stringify(manifest.contributes.walkthroughs);
  for (const idea of [
    /A session is where work lives/,
    /a place to come back to/,
    /opens a branch and deletes nothing/,
    /lightens the context but keeps the goal/,
  ]) {
    assert.match(whole, idea);
  }
});

test("every plural text has its singular", () => {
  const strings = sources.join("\n");
  const counts = strings.matchAll(/\$\{[^{}`]*\} ((?!is\b|was\b|at\b)[a-z ]*?[a-z]{2,})s\b/g);
  const many = [...counts].map(([, name]) => name);
  const one = (name = "") => (name === "time" ? /"once"/ : new RegExp(`\\b1 (more )?${name}\\b`));
  const missing = many.filter((name) => !one(name).test(strings));

  assert.ok(many.length > 10);
  assert.deepEqual(missing, []);
});

test("nothing is rendered as markdown, nothing links to a command", () => {
  assert.deepEqual(linesWith(/MarkdownString|isTrusted: |supportHtml|supportThemeIcons/), []);
  assert.deepEqual(linesWith(/\bcommand:\w/), []);
});

test("a setting that names a program or a folder cannot come from a workspace", () => {
  const { properties } = manifest.contributes.configuration;
  const trusted: string[] = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  for (const name of ["server.command", "python", "codexHome", "stateDir", "hashOutsideFolder"]) {
    const key = `codexCheckpoints.${name}`;
    assert.equal(properties[key].scope, "machine", key);
    assert.ok(trusted.includes(key), key);
  }
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, "limited");
  assert.equal(manifest.capabilities.virtualWorkspaces, false);
});

test("the tabs of each kind wake the extension, which fills them again", () => {
  const types = sources.flatMap(
    (source) => source.match(/(?<=const TYPES = .*)codexCheckpoints\.\w+/gs) ?? [],
  );

  assert.equal(types.length, 6);
  for (const type of types) {
    assert.ok(manifest.activationEvents.includes(`onWebviewPanel:${type}`), type);
  }
});

test("the types are those of the oldest editor that is supported", () => {
  assert.equal(manifest.engines.vscode, "^1.91.0");
  assert.equal(manifest.devDependencies["@types/vscode"], "1.91.0");
  assert.equal(manifest.dependencies, undefined);
});

test("the lock names no registry", () => {
  assert.doesNotMatch(text("package-lock.json"), /"resolved"|https?:\/\/registry/);
});

function linesWith(pattern: RegExp): string[] {
  return sources.flatMap((source) => source.split("\n")).filter((line) => pattern.test(line));
}

test("an anchor such as #165 in our text is not shown as a colour", () => {
  const options = manifest.contributes.configurationDefaults["[codex-checkpoint-view]"];
  assert.equal(options["editor.colorDecorators"], false);
});
