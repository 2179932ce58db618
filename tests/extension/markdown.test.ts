import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "../../extension/src/common/model/links.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import { type Mark, readMarkdown, readTyped } from "../../extension/src/page/model/markdown.ts";

/** Return all marks of a tree, including nested ones. */
function all(marks: readonly Mark[] | null): readonly Mark[] {
  return (marks ?? []).flatMap((mark) =>
    typeof mark === "object" && "children" in mark ? [mark, ...all(mark.children)] : [mark],
  );
}

function kinds(marks: readonly Mark[] | null): readonly string[] {
  return all(marks).map((mark) => (typeof mark === "string" ? "text" : mark.kind));
}

/** Return the visible text of a tree. */
function words(marks: readonly Mark[] | null): string {
  return all(marks)
    .map((mark) => (typeof mark === "string" ? mark : "text" in mark ? mark.text : ""))
    .join("");
}

test("an answer is rendered: headings, emphasis, lists, tables, code with its language", () => {
  const text =
    "## Done\n\n**All** of `a.py`:\n\n1. one\n2. two\n\n```ts\nlet a = 1;\n```\n\n|a|\n|-|\n|b|";

  const marks = readMarkdown(text);

  const seen = new Set(kinds(marks));
  for (const kind of ["h2", "strong", "code", "list", "li", "block", "table", "th", "td"]) {
    assert.ok(seen.has(kind), kind);
  }
  const block = all(marks).find((mark) => typeof mark === "object" && mark.kind === "block");
  assert.deepEqual(block, { kind: "block", language: "ts", text: "let a = 1;\n" });
  assert.deepEqual(readMarkdown("one\ntwo"), [
    { kind: "p", children: ["one", { kind: "br", children: [] }, "two"] },
  ]);
});

test("a request stays as typed, except for code between backticks", () => {
  const typed = "# Why is __init__ 2 * 3 * 4?\n  - [a](b.py)\n<b>\nSee `x`:\n```py\nx\n```";

  const marks = readTyped(typed);

  assert.deepEqual(new Set(kinds(marks)), new Set(["p", "text", "code", "block"]));
  assert.match(words(marks), /^# Why is __init__ 2 \* 3 \* 4\?\n {2}- \[a\]\(b\.py\)\n<b>\nSee x:/);
});

test("HTML and scripts are text", () => {
  const hostile =
    '<script>owned = 1</script>\n\n<img src=x onerror="owned=1">\n\n<a href="command:x">a</a>';

  const marks = readMarkdown(hostile);

  assert.deepEqual(new Set(kinds(marks)), new Set(["p", "text"]));
  assert.equal(words(marks), hostile.replaceAll("\n", ""));
});

for (const address of [
  ...["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#x0A;script:x", "vbscript:x", "blob:x"],
  ...["command:workbench.action.quit", "command:x?%5B%5D", "vscode://x.y/z", "vscode-insiders://x"],
  ...["data:text/html,<script>x</script>", "data:image/svg+xml;base64,AAAA", "mailto:a@b.c"],
  ...["//evil.example/x", "\\\\\\\\evil\\\\share", "file://evil.example/share", "ftp://a.b/c"],
]) {
  test(`a link to ${address} is text`, () => {
    for (const text of [`[a](<${address}>)`, `![a](<${address}>)`, `[a][b]\n\n[b]: <${address}>`]) {
      const links = all(readMarkdown(text)).filter(
        (mark) => typeof mark === "object" && mark.kind === "link",
      );
      assert.deepEqual(links, [], text);
    }
  });
}

test("a picture is shown as its words and address, and is never loaded", () => {
  const marks = readMarkdown("![the logo](https://tracker.example/a.png?id=7)");

  assert.deepEqual(marks, [
    { kind: "p", children: ["the logo (https://tracker.example/a.png?id=7)"] },
  ]);
});

test("a definition of a link hides nothing", () => {
  assert.match(words(readMarkdown("[b]: https://a.example 'secret'")), /secret/);
});

test("a link keeps its address, to the web or to a file with its line", () => {
  const marks = readMarkdown("See [the page](https://a.example/x) and [app.ts](src/app.ts:12).");

  const links = all(marks).filter((mark) => typeof mark === "object" && mark.kind === "link");
  assert.deepEqual(links, [
    { kind: "link", address: "https://a.example/x", children: ["the page"] },
    { kind: "link", address: "src/app.ts:12", children: ["app.ts"] },
  ]);
});

test("an address is a page on the web, a place in a file, or nothing", () => {
  const file = (path: string, line: number | null = null) => ({ kind: "file", path, line });
  const addresses = {
    "https://a.example": { kind: "web", address: "https://a.example/" },
    "src/a.ts": file("src/a.ts"),
    "src/a.ts:12": file("src/a.ts", 12),
    "src/a.ts:12:5": file("src/a.ts", 12),
    "src/a.ts#L12": file("src/a.ts", 12),
    "src/a.ts#L12-L20": file("src/a.ts", 12),
    "/home/dev/my%20file.md": file("/home/dev/my file.md"),
    "file:///home/dev/a.md": file("/home/dev/a.md"),
    "file:///C:/dev/a.md": file("C:/dev/a.md"),
    "C:\\dev\\a.md:3": file("C:\\dev\\a.md", 3),
    "..%2f..%2fetc": file("../../etc"),
  };
  for (const [address, target] of Object.entries(addresses)) {
    assert.deepEqual(readTarget(address), target, address);
  }
  for (const address of ["", "#heading", "https://", "a\u202eb.ts", "a%00b", "x".repeat(2_001)]) {
    assert.equal(readTarget(address), null, address);
  }
});

test("a page requests a link and a whole text in known words", () => {
  assert.deepEqual(fromPage({ kind: "link", address: "a.ts" }), { kind: "link", address: "a.ts" });
  assert.equal(fromPage({ kind: "link", address: 1 }), null);
  assert.deepEqual(fromPage({ kind: "whole", ref: "#1" }), { kind: "whole", ref: "#1" });
});

test("control characters, terminal escapes and bidirectional marks are removed", () => {
  const marks = readMarkdown("\u001b[31mred\u202eesrever\u2066 `\u0007`\r\n\r\n```\n\u202e\n```");

  assert.doesNotMatch(words(marks), /(?![\n\t])\p{Cc}|\p{Bidi_Control}/u);
});

/** Worst cases for a slow parser, each as long as a rendered text can be. */
const SIZE = 32_000;
const fill = (text: string) => text.repeat(Math.ceil(SIZE / text.length)).slice(0, SIZE);
const TIRING = {
  "one long line": fill("word "),
  "a line without a blank": fill("x"),
  "many lines": fill("a\n"),
  "lists within lists": fill(
    Array.from({ length: 200 }, (_, at) => `${"  ".repeat(at)}- a`).join("\n"),
  ),
  "lists in one line": fill("- "),
  "quotes within quotes": fill("> "),
  brackets: fill("["),
  "pictures that do not end": fill("!["),
  "many links": fill("[a](b.ts) "),
  "links within links": fill("[a]("),
  "emphasis within emphasis": fill("*a_ "),
  "backticks of all lengths": fill(
    Array.from({ length: 200 }, (_, at) => "`".repeat(at)).join(" a "),
  ),
  "a table of many columns": `${"|a".repeat(50)}|\n${"|-".repeat(50)}|\n${fill("|a|b\n")}`.slice(
    0,
    SIZE,
  ),
  entities: fill("&amp;"),
  addresses: fill("<http:"),
  "headings by underlines": fill("a\n=\n"),
  "a fence that does not end": `\`\`\`\n${fill("code\n")}`.slice(0, SIZE),
};

/** The letters that must be visible. */
function letters(text: string): string {
  return text
    .replaceAll("](b.ts)", "")
    .replaceAll("&amp;", "")
    .replace(/[^a-z]/g, "");
}

for (const [name, text] of Object.entries(TIRING)) {
  test(`it does not freeze and loses nothing: ${name}`, () => {
    const start = performance.now();
    const marks = readMarkdown(text);
    const took = performance.now() - start;

    assert.ok(took < 2_000, `${Math.round(took)} ms`);
    assert.ok(all(marks).length <= 20_000);
    assert.ok(marks === null || letters(words(marks)) === letters(text), "a part of it is lost");
  });
}

test("a text that is too long, too deep or too fragmented is not rendered", () => {
  assert.equal(readMarkdown(`${fill("word ")}!`), null);
  assert.equal(readTyped(`${fill("word ")}!`), null);
  assert.equal(readMarkdown(TIRING["lists within lists"]), null);
  assert.equal(readMarkdown(TIRING["a table of many columns"]), null);
  assert.equal(readMarkdown(`\`\`\`\n${"x".repeat(5_000_000)}`), null);
});
