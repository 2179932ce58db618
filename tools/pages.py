"""Write the generated parts of docs/cli.md and server/PROTOCOL.md.

    python tools/pages.py [--check]

On docs/cli.md this is the text between `<!-- help -->` and `<!-- end -->` below the heading of each
command; a heading is added for a new command. On server/PROTOCOL.md it is the table of each record,
with the meanings kept, and the example below the heading of each method, answered by a real server.
Everything else on both pages is kept.
With `--check` nothing is written; the exit code is 1 if a page is out of date.
"""

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from unittest import mock

import attrs

from codex_checkpoints.doors import cli, protocol
from codex_checkpoints.doors.typescript import RECORDS
from codex_checkpoints.operations.services import InitializationOptions

ROOT = Path(__file__).resolve().parents[1]
CLI = ROOT / "docs" / "cli.md"
PROTOCOL = ROOT / "server" / "PROTOCOL.md"

EVERYWHERE = {"-h, --help", "--codex-home DIR", "--state-dir DIR"}
"""The options of every command, which the page describes only once."""

# --- the commands --------------------------------------------------------------------------------


def printed_help(*arguments: str) -> str:
    """Return a help text without line breaks."""
    printed = io.StringIO()
    wide = mock.patch.dict(os.environ, {"COLUMNS": "1000", "NO_COLOR": "1"})
    with wide, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main([*arguments, "--help"])
    return printed.getvalue()


def commands() -> list[str]:
    """Return the names of all commands, in the order of the help."""
    return re.findall(r"(?m)^    ([a-z-]+)(?=  |$)", printed_help())


def arguments_of(printed: str) -> list[tuple[str, str]]:
    """Return the arguments in a help text, each with its meaning."""
    lines = re.sub(r"(?m)^(  \S.*)\n {8,}(?=\S)", r"\1  ", printed)
    return re.findall(r"(?m)^  (\S.*?)  +(\S.*)$", lines.partition("\n\n")[2])


def help_block(name: str) -> str:
    """Return the generated part of a command's section."""
    printed = printed_help(name)
    usage, _, rest = printed.removeprefix("usage: ").partition("\n\n")
    usage = re.sub(r" \[(?:-h|--codex-home DIR|--state-dir DIR)\]", "", usage)
    shown = [(name, text) for name, text in arguments_of(printed) if name not in EVERYWHERE]
    lines = [
        "<!-- help -->",
        rest.partition("\n\n")[0].strip(),
        "",
        "```text",
        *(line.strip() for line in usage.splitlines()),
        "```",
        "",
    ]
    if shown:
        lines += ["| argument | meaning |", "| --- | --- |"]
        lines += [f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in shown]
        lines.append("")
    return "\n".join([*lines, "<!-- end -->"])


def cli_page(page: str) -> str:
    """Return the page of the commands with the program's current help."""
    head, *sections = re.split(r"(?m)^## `codex-checkpoints ", page)
    texts: dict[str, str] = {}
    for section in sections:
        name, _, text = section.partition("`\n")
        texts[name] = re.sub(r"(?s)<!-- help -->.*?<!-- end -->\n*", "", text).strip("\n")
    parts = [head.rstrip("\n")]
    for name in commands():
        parts.append(f"## `codex-checkpoints {name}`\n\n{help_block(name)}")
        parts += [texts[name]] if texts.get(name) else []
    return "\n\n".join(parts) + "\n"


# --- the protocol ------------------------------------------------------------------------------


NAMES = {record: name for name, record in RECORDS.items()}


def in_words(hint: object) -> str:
    """Return the name of a type on the page."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        names = ("null" if part is NoneType else in_words(part) for part in inner)
        return " or ".join(dict.fromkeys(names))
    if origin is tuple:
        return f"array of {in_words(inner[0])}"
    if origin in {dict, Mapping}:
        values = "" if inner[1] is Any else f" of {in_words(inner[1])}"
        return f"object{values}"
    if origin is Literal:
        return in_words(str)
    if not isinstance(hint, type):
        raise TypeError(f"no words for {hint}")
    simple = {str: "string", int: "integer", bool: "boolean", Any: "any JSON value"}
    return simple.get(hint) or f"[{NAMES[hint]}](#{NAMES[hint].lower()})"


def default(field: "attrs.Attribute[Any]") -> str:
    """Return the default of a field of params as shown on the page."""
    if field.default is attrs.NOTHING:
        return "required"
    make = getattr(field.default, "factory", None)
    value = field.default if make is None else make()
    return f"`{json.dumps(value)}`"


def table(cls: type, meanings: dict[str, str]) -> str:
    """Return the table of a record; a field without a meaning gets `?`."""
    asked = {method.params for method in protocol.METHODS} | {InitializationOptions}
    hints = get_type_hints(cls)
    heads = ["field", "type", *(["default"] if cls in asked else []), "meaning"]
    lines = [heads, ["---"] * len(heads)]
    for field in attrs.fields(cls):
        name = re.sub(r"_([a-z])", lambda found: found[1].upper(), field.name)
        cells = [f"`{name}`", in_words(hints[field.name])]
        cells += [default(field)] if cls in asked else []
        lines.append([*cells, meanings.get(name, "?")])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_tables(page: str) -> str:
    """Return the page of the protocol with an updated table for each record."""
    known = dict(sorted(RECORDS.items()))

    def written(section: re.Match[str]) -> str:
        name, text = section[1], section[2]
        rows = re.findall(r"(?m)^\| `(\w+)` \|.* \| (.*) \|$", text)
        if name not in known:
            return ""
        found = re.search(r"(?m)(?:^\|.*\n)+", text)
        if not attrs.fields(known[name]):
            prose = text if found is None else text[: found.start()]
            return f"### {name}\n{prose.rstrip()}\n\n"
        block = table(known[name], dict(rows))
        if found is None:
            return f"### {name}\n{text.rstrip()}\n\n{block}\n"
        return f"### {name}\n{text[: found.start()]}{block}{text[found.end() :]}"

    page = re.sub(r"(?ms)^### (\w+)\n(.*?)(?=^#{1,3} |\Z)", written, page)
    missing = [name for name in known if f"\n### {name}\n" not in page]
    return page + "".join(f"\n### {name}\n\n{table(known[name], {})}" for name in missing)


def with_examples(page: str, examples: dict[str, tuple[Any, Any]]) -> str:
    """Return the page with these examples, which are params and answer by method."""
    for number, (name, (params, answer)) in enumerate(examples.items(), start=1):
        head = {"jsonrpc": "2.0", "id": number}
        blocks = "\n\n".join(
            f"```json\n{json.dumps(message, ensure_ascii=False, indent=2)}\n```"
            for message in (
                {**head, "method": name, "params": params},
                {**head, "result": answer},
            )
        )
        start = page.index(f"\n## `{name}`\n")
        end = page.find("\n## ", start + 1) % (len(page) + 1)
        section = page[start:end]
        found = re.search(r"(?ms)^```json\n.*?^```$(?:\n\n^```json\n.*?^```$)?", section)
        if found is None:
            raise ValueError(f"no example under {name}")
        page = page[: start + found.start()] + blocks + page[start + found.end() :]
    return page


def captured() -> dict[str, tuple[Any, Any]]:
    """Return an example of each method, in the order of the table."""
    sys.path.append(str(ROOT / "tests" / "support"))
    from example_home import examples  # noqa: PLC0415 - only needed for the examples

    with tempfile.TemporaryDirectory() as folder:
        found = examples(Path(folder, "home"))
    return {method.name: found[method.name] for method in protocol.METHODS}


def protocol_page(page: str) -> str:
    """Return the page of the protocol, generated from the current code."""
    return with_examples(with_tables(page), captured())


# --- both ----------------------------------------------------------------------------------------


def main() -> int:
    """Write the pages, or check them; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale: list[str] = []
    pages: list[tuple[Path, Callable[[str], str]]] = [(CLI, cli_page), (PROTOCOL, protocol_page)]
    for path, written in pages:
        before = path.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(after, encoding="utf-8", newline="\n")
    print("\n".join(stale) or "All pages are as the code has them.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
