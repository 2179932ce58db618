// Builds dist/codex-checkpoints-<version>.vsix: bundle of the server, bundle of the client, then
// a look at what would be packed, then the package. `--no-bundle` keeps `bundled/` as it is.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { isObeyed } from "./inline.mjs";

const { name, version } = JSON.parse(readFileSync("package.json", "utf8"));
const vsix = `dist/${name}-${version}.vsix`;

/** Every file of the package fits one of these, and each of these has a file. */
const EXPECTED = [
  /^package\.json$/,
  /^(LICENSE|dist\/README\.md|dist\/THIRD-PARTY\.txt)$/,
  /^dist\/extension\.js$/,
  /^dist\/webview\/(compaction|parsers|preview|push|sections|session)\.js$/,
  /^dist\/webview\/(conversation|pages|session)\.css$/,
  /^extension\/media\/([\w-]+\/)*[\w-]+\.(png|svg)$/,
  /^bundled\/launch\.py$/,
  /^bundled\/server\/codex_checkpoints\/([\w-]+\/)*\w+\.py$/,
  /^bundled\/libs\/([\w.-]+\/)*[\w.-]+$/,
  /^bundled\/native\/darwin-(arm64|x86_64)\/([\w.-]+\/)*[\w.-]+$/,
];

/** @param {string} program @param {string[]} args */
const run = (program, ...args) => execFileSync(program, args, { stdio: "inherit" });

const VSCE = resolve("node_modules/@vscode/vsce/vsce");

if (!process.argv.includes("--no-bundle")) {
  const beside = [".venv/bin/python", ".venv/Scripts/python.exe"].find((path) => existsSync(path));
  run(beside ?? "python3", "extension/bundle.py");
}
// Left by whoever started the server from here.
for (const entry of readdirSync("bundled", { recursive: true, withFileTypes: true })) {
  if (entry.isDirectory() && entry.name === "__pycache__") {
    rmSync(join(entry.parentPath, entry.name), { recursive: true });
  }
}
run(process.execPath, "extension/build.mjs");

// An editor shows the page of an extension without the files beside it: its pictures are in it.
const page = readFileSync("README.md", "utf8").replaceAll(
  /\]\((docs\/[\w-]+\.png)\)/g,
  (_, path) => `](data:image/png;base64,${readFileSync(path).toString("base64")})`,
);
mkdirSync("dist", { recursive: true });
writeFileSync("dist/README.md", page);

// vsce looks at every file below its folder, and here that would be all of node_modules, twice.
const staged = "dist/package";
rmSync(staged, { recursive: true, force: true });
for (const part of [
  ...["package.json", "LICENSE", ".vscodeignore", "dist/README.md", "dist/extension.js"],
  ...["dist/THIRD-PARTY.txt", "dist/webview", "extension/media", "bundled"],
]) {
  cpSync(part, join(staged, part), { recursive: true, preserveTimestamps: true });
}

const readme = ["--readme-path", "dist/README.md"];
const listed = execFileSync(process.execPath, [VSCE, "ls", "--no-dependencies", ...readme], {
  cwd: staged,
  encoding: "utf8",
});
const packed = listed.trim().split("\n");
const strange = packed.filter((path) => !EXPECTED.some((pattern) => pattern.test(path)));
const missing = EXPECTED.filter((pattern) => !packed.some((path) => pattern.test(path)));
const scripts = packed.filter((path) => /^dist\/webview\/.*\.js$/.test(path));
const obeyed = scripts.filter((path) => isObeyed(readFileSync(path, "utf8")));
if (obeyed.length > 0) {
  console.error(["These scripts would end or hide in their page:", ...obeyed].join("\n"));
  process.exit(1);
}
if (strange.length > 0 || missing.length > 0) {
  console.error(["Not as expected:", ...strange, "Missing:", ...missing.map(String)].join("\n"));
  process.exit(1);
}
const options = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"];
// The time inside the archive is one for all files, so that two builds give the same bytes.
execFileSync(process.execPath, [VSCE, "package", ...options, ...readme, "--out", resolve(vsix)], {
  cwd: staged,
  env: { ...process.env, SOURCE_DATE_EPOCH: "315619200" },
  stdio: ["ignore", "ignore", "inherit"],
});
rmSync(staged, { recursive: true });
console.log(`${vsix} (${packed.length} files)`);
