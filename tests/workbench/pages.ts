/** Our pages in the front of a workbench, and checks of their accessibility. */

import assert from "node:assert/strict";
import axe from "axe-core";
import type { FrameLocator, Page } from "playwright-core";
import type { Workbench } from "./workbench.ts";

/** A theme of each kind, with its class on the workbench and its kind on a page. */
const THEMES = {
  dark: { theme: "Dark 2026", kind: "vs-dark", page: "vscode-dark" },
  "high contrast dark": {
    theme: "Dark High Contrast",
    kind: "hc-black",
    page: "vscode-high-contrast",
  },
  "high contrast light": {
    theme: "Light High Contrast",
    kind: "hc-light",
    page: "vscode-high-contrast-light",
  },
  light: { theme: "Light 2026", kind: "vs", page: "vscode-light" },
};

declare global {
  interface Window {
    axe: typeof axe;
  }
}

/** Return the page in front. */
export function inFront(page: Page): FrameLocator {
  return page.frameLocator("iframe.webview.ready:visible").frameLocator("#active-frame");
}

/** Run something in each kind of theme, first in the current one; the last one stays. */
export async function inEachTheme(
  workbench: Workbench,
  run: (colours: string) => Promise<void>,
): Promise<void> {
  const classes = await workbench.page.locator(".monaco-workbench").getAttribute("class");
  const isShown = (kind: string) => classes?.split(" ").includes(kind) === true;
  const themes = Object.entries(THEMES).sort(
    ([, one], [, other]) => Number(isShown(other.kind)) - Number(isShown(one.kind)),
  );
  for (const [colours, { theme, kind, page }] of themes) {
    if (!isShown(kind)) {
      await workbench.theme(theme, kind);
    }
    if (await workbench.page.locator("iframe.webview.ready:visible").count()) {
      await inFront(workbench.page).locator(`body[data-vscode-theme-kind="${page}"]`).waitFor();
    }
    await run(colours);
  }
}

/** Take a screenshot and check the accessibility of a page in each kind of theme. */
export async function isForEverybody(workbench: Workbench, name: string): Promise<void> {
  await inEachTheme(workbench, async (colours) => {
    await workbench.screenshot(`${name} ${colours}`);
    assert.deepEqual(await barriers(workbench.page), [], `${name} in ${colours}`);
  });
}

/**
 * Return axe-core's findings on the page in front, each with its element; a contrast that axe
 * cannot measure is a finding too.
 */
export async function barriers(page: Page): Promise<readonly string[]> {
  const body = inFront(page).locator("body");
  if (!(await body.evaluate(() => "axe" in window))) {
    // Through the debugging protocol, since the page's own policy blocks scripts.
    await body.evaluate(`${axe.source}; 0`);
  }
  return body.evaluate(async () => {
    const { violations, incomplete } = await window.axe.run(document);
    const unsure = incomplete.filter(({ id }) => id === "color-contrast");
    return [...violations, ...unsure].flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html} ${node.any.map(({ message }) => message)}`),
    );
  });
}

/** The focused element, and the contrast of its focus ring with the page; 1 means none. */
export interface Focus {
  readonly name: string;
  readonly ring: number;
}

/** Press Tab through a page, and return its stops in order. */
export async function tabThrough(page: Page, stops: number): Promise<readonly Focus[]> {
  const stopped: Focus[] = [];
  while (stopped.length < stops) {
    stopped.push(await focused(page));
    await page.keyboard.press("Tab");
  }
  return stopped;
}

function focused(page: Page): Promise<Focus> {
  return inFront(page)
    .locator("body")
    .evaluate((body) => {
      const numbers = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number);
      // Relative luminance and contrast, as in WCAG.
      const light = (colour: string) => {
        const [red = 0, green = 0, blue = 0] = numbers(colour).map((each) => {
          const share = each / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      const contrast = (one: number, other: number) =>
        (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      const here = document.activeElement;
      if (!(here instanceof HTMLElement) || here === body) {
        return { name: "nothing", ring: 1 };
      }
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(here);
      const isDrawn = outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 1;
      const { top, bottom } = here.getBoundingClientRect();
      const isSeen = top >= 0 && bottom <= window.innerHeight;
      const label = here instanceof HTMLInputElement ? here.labels?.[0]?.textContent : null;
      return {
        name: here.ariaLabel ?? label ?? here.textContent ?? "",
        ring:
          isDrawn && isSeen
            ? contrast(light(outlineColor), light(getComputedStyle(body).backgroundColor))
            : 1,
      };
    });
}
