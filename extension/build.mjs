// Bundles: `node extension/build.mjs` the extension, `… --tests` its tests, `… --watch` while working.

import { readdirSync, rmSync } from "node:fs";
import { context } from "esbuild";

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
 * What runs in a page of ours, in the browser's part of the editor.
 * @type {import("esbuild").BuildOptions}
 */
const pages = {
  bundle: true,
  logLevel: "warning",
  platform: "browser",
  target: "chrome122",
  entryPoints: ["preview.ts", "details.ts", "compaction.ts", "session.ts", "pages.css"].map(
    (name) => `extension/src/webview/${name}`,
  ),
  outdir: "dist/webview",
  format: "iife",
  minify: !watch,
  sourcemap: watch ? "inline" : false,
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

if (tests) {
  rmSync("dist/tests", { recursive: true, force: true });
}
for (const options of tests ? [nodeTests] : [extension, pages]) {
  const build = await context(options);
  if (watch) {
    await build.watch();
  } else {
    await build.rebuild();
    await build.dispose();
  }
}
