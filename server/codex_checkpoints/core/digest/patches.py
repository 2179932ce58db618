"""The hunks that patches have for a file: their rows, counts, and the names that they give."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codex_checkpoints.core.rollout.fields import list_of, object_of, text_of, texts_of
from codex_checkpoints.core.rollout.items import CommandRun, FilesChanged, ToolCall
from codex_checkpoints.core.rollout.reader import Line
from codex_checkpoints.core.rollout.script import BEGIN
from codex_checkpoints.values import Factory, define

_NAME = 60
"""Code points of a name."""

_NAMES = 8
"""How many names one patch gives to a file."""

_HEADER = re.compile(r"\*\*\* (?:Add|Update|Delete) File:(.*)")
_DEFINITION = re.compile(
    r"\s*(?:export |default |pub(?:\([a-z]+\))? |public |private |protected |static |async "
    r"|abstract )*"
    r"(?:def|class|func|fn|function|struct|enum|trait|interface|type|impl|module)"
    r"\s+([A-Za-z_$][\w$]*(?:(?:::|\.)[\w$]+)*)"
)


@define
class Counts:
    """What patches did to one file, as far as their text tells."""

    added: int = 0
    removed: int = 0
    names: dict[str, None] = Factory(dict[str, None])

    @classmethod
    def of(cls, rows: Iterable[str]) -> Counts:
        """Count the rows of some hunks."""
        found = cls()
        for row in rows:
            found.line(row)
        return found

    def line(self, line: str) -> None:
        """Take one line of a hunk."""
        if line.startswith("@@"):
            name = line.rsplit("@@", maxsplit=1)[-1].strip()
            if name:
                self.names[name[:_NAME]] = None
            return
        self.added += line.startswith("+")
        self.removed += line.startswith("-")
        if line[:1] != "-" and len(self.names) < _NAMES and (found := _DEFINITION.match(line[1:])):
            self.names[found[1][:_NAME]] = None


def hunks_of(item: object, line: Line) -> dict[str, list[str]]:
    """Return the rows of the hunks that a call has for each file, by the path as it has it."""
    found: dict[str, list[str]] = {}
    if isinstance(item, FilesChanged):
        payload = object_of(line.payload.get("item")) or line.payload
        for path, each in object_of(payload.get("changes")).items():
            change = object_of(each)
            content = text_of(change.get("content")) or ""
            sign = "-" if change.get("type") == "delete" else "+"
            diff = text_of(change.get("unified_diff")) or "".join(
                f"{sign}{row}\n" for row in content.splitlines()
            )
            begin = 0 if content else max(0, diff.find("@@"))  # what stands in front is a heading
            found[path] = diff[begin:].removesuffix("\n").split("\n") if diff else []
    elif isinstance(item, ToolCall | CommandRun):
        current: list[str] | None = None
        text = patch_in({"": list(item.argv)} if isinstance(item, CommandRun) else item.arguments)
        for row in text.split("\n"):
            header = _HEADER.match(row)
            if header is not None:
                current = found.setdefault(header[1].strip(), [])
            elif row.startswith("*** End Patch"):
                current = None
            elif current is not None and not row.startswith("***"):
                current.append(row)
    return found


def patch_in(arguments: object) -> str:
    """Return the argument of a call that holds a patch; empty without one."""
    if isinstance(arguments, str):
        return arguments
    for each in object_of(arguments).values():
        for text in texts_of(each) or [part for part in list_of(each) if isinstance(part, str)]:
            if BEGIN in text:
                return text
    return ""
