// Bundles: `node extension/build.mjs` the extension, `… --tests` its tests, `… --watch` while working.

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { context } from "esbuild";
import { inlinable } from "./inline.mjs";

const watch = process.argv.includes("--watch");
const tests = process.argv.includes("--tests");

/** @type {import("esbuild").BuildOptions} */
const shared = {
  bundle: true,
  logLevel: "warning",
  platform: "node",
  target: "node20",
};

/** @type {import("esbuild").BuildOptions} */
const extension = {
  ...shared,
  entryPoints: ["extension/src/extension.ts"],
  outfile: "dist/extension.js",
  external: ["vscode"],
  format: "cjs",
  mainFields: ["module", "main"],
  minify: !watch,
  sourcemap: watch ? "inline" : false,
};

/**
 * Makes the scripts of pages safe between the tags of their page, also while watching.
 * @type {import("esbuild").Plugin}
 */
const inline = {
  name: "inline",
  setup(build) {
    build.onEnd(({ metafile }) => {
      const made = Object.keys(metafile?.outputs ?? {});
      for (const path of made.filter((each) => each.endsWith(".js"))) {
        writeFileSync(path, inlinable(readFileSync(path, "utf8")));
      }
    });
  },
};

/**
 * What runs in a page of ours, in the browser's part of the editor.
 * @type {import("esbuild").BuildOptions}
 */
const pages = {
  bundle: true,
  logLevel: "warning",
  platform: "browser",
  target: "chrome122",
  entryPoints: [
    ...["preview.ts", "compaction.ts", "push.ts", "session.ts", "sections.ts"],
    ...["pages.css", "session.css", "conversation.css"],
  ].map((name) => `extension/src/webview/${name}`),
  outdir: "dist/webview",
  format: "iife",
  minify: !watch,
  plugins: [inline],
  sourcemap: watch ? "inline" : false,
};

/**
 * The second script of the session's page.
 * @type {import("esbuild").BuildOptions}
 */
const parsers = {
  ...pages,
  entryPoints: ["extension/src/webview/parsers.ts"],
  globalName: "parsers",
};

/** @type {import("esbuild").BuildOptions} */
const nodeTests = {
  ...shared,
  entryPoints: readdirSync("tests/extension")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `tests/extension/${name}`),
  outdir: "dist/tests",
  outExtension: { ".js": ".mjs" },
  format: "esm",
  // Packages stay packages: they are there when tests run, and CommonJS ones need `require`.
  packages: "external",
  sourcemap: "inline",
};

/**
 * The licences of the packages whose code is in the bundles, each below the package's name.
 * @param {readonly string[]} inputs
 */
function licences(inputs) {
  const folders = new Set(
    inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  return [...folders].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) {
      throw new Error(`${name} has no licence`);
    }
    return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
  });
}

if (tests) {
  rmSync("dist/tests", { recursive: true, force: true });
}
/** @type {string[]} */
const inputs = [];
for (const options of tests ? [nodeTests] : [extension, pages, parsers]) {
  const build = await context({ ...options, metafile: true });
  if (watch) {
    await build.watch();
  } else {
    const { metafile } = await build.rebuild();
    inputs.push(...Object.keys(metafile.inputs));
    await build.dispose();
  }
}
if (!watch && !tests) {
  writeFileSync("dist/THIRD-PARTY.txt", licences(inputs).join(`\n${"-".repeat(80)}\n\n`));
}
