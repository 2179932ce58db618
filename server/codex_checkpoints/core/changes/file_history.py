"""Defines the combined changes of a session to one file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from attrs import Factory, define

from codex_checkpoints.core.effects import Touched
from codex_checkpoints.core.record_place import RecordPlace

_MOST_NAMES = 64
"""The most names that are kept for one file."""

_NAME = 60
"""The code points of a name."""

_NAMES = 16
"""The most names that one patch gives to a file."""

_DEFINITION = re.compile(
    r"\s*(?:export |default |pub(?:\([a-z]+\))? |public |private |protected |static |async "
    r"|abstract )*"
    r"(?:def|class|func|fn|function|struct|enum|trait|interface|type|impl|module)"
    r"\s+([A-Za-z_$][\w$]*(?:(?:::|\.)[\w$]+)*)"
    # A function bound to a name in JavaScript, or a method after a modifier.
    r"|\s*(?:export )?(?:const|let) ([A-Za-z_$][\w$]*) = "
    r"(?:async )?(?:function\b|\w+ =>|\(.*=>|\([{[]?$)"
    r"|\s*(?:(?:public|private|protected|static|async|override) )+([A-Za-z_$][\w$]*)\("
)


def defined(row: str, otherwise: str | None = None) -> str:
    """Return the name that a row defines, else the fallback if given, else the row itself."""
    found = _DEFINITION.match(row)
    default = row if otherwise is None else otherwise
    return default if found is None else found[found.lastindex or 0][:_NAME]


@define
class PatchCounts:
    """The changes of patches to one file, as far as their text shows them.

    `gone` are the names of definitions that they removed and did not add again.
    """

    added: int = 0
    removed: int = 0
    names: dict[str, None] = Factory(dict[str, None])
    gone: dict[str, None] = Factory(dict[str, None])

    @classmethod
    def of(cls, rows: Iterable[str]) -> PatchCounts:
        """Count the rows of some hunks."""
        found = cls()
        for row in rows:
            found.line(row)
        return found

    def line(self, line: str) -> None:
        """Count one line of a hunk."""
        if line.startswith("@@"):
            name = line.rsplit("@@", maxsplit=1)[-1].strip()
            if name:
                self.names[name[:_NAME]] = None
            return
        self.added += line.startswith("+")
        self.removed += line.startswith("-")
        name = defined(line[1:], "")
        if not name or name.startswith("__"):
            return
        if line.startswith("-"):
            self.gone[name] = None
        else:
            self.gone.pop(name, None)
            if len(self.names) < _NAMES:
                self.names[name] = None


ChangeKind = Literal["created", "changed", "deleted", "moved", "put_back"]


@define
class FileHistory:
    """The changes of a session to one file: counts of lines, and the names from the hunks.

    `onto` is the uri of the target if the file was only copied or moved: if the target is a folder,
    it is not a file of that name.  `whole` is the `seq` of the newest call that wrote all of it or
    deleted it, -1 if there is none.  `was_there`: the session did not create it.  `began` is the
    `seq` of its first change, `put_back` the `seq` of the call by which git restored the file.
    """

    where: RecordPlace
    added: int = 0
    removed: int = 0
    turn_ids: dict[str | None, None] = Factory(dict[str | None, None])
    turns: tuple[int, ...] = ()
    names: dict[str, None] = Factory(dict[str, None])
    created: bool = False
    deleted: bool = False
    moved_from: str | None = None
    onto: str | None = None
    whole: int = -1
    was_there: bool = False
    began: int = -1
    put_back: int | None = None
    moved_to: str | None = None
    kept: tuple[int, int, tuple[str, ...]] = (0, 0, ())
    """Lines added and removed, and names, at the last commit."""

    @property
    def kind(self) -> ChangeKind:
        """Return the combined kind of the changes to the file."""
        if self.put_back is not None and self.where.seq <= self.put_back:
            return "put_back"
        if self.deleted:
            return "deleted"
        if self.created and self.moved_to is None:
            return "created"
        return "changed" if self.moved_to is None and self.moved_from is None else "moved"

    def take(
        self, where: RecordPlace, touched: Touched, counts: PatchCounts | None, whole: int
    ) -> None:
        """Add one change; `whole` is the `seq` to keep if none of the earlier file remains."""
        self.where = where
        is_added = touched.action == "add"
        self.was_there |= not self.turn_ids and not is_added
        self.turn_ids[where.turn_id] = None
        is_made = (self.created and touched.action != "delete") or is_added
        self.created = is_made and not self.was_there
        self.deleted, self.moved_to = touched.action == "delete", touched.moved_to
        if touched.action == "move":
            self.moved_from = touched.moved_from
        if touched.rewrites:
            self.whole = whole
            self.names.clear()
        if is_added and not self.was_there:
            self.added = self.removed = 0
        if counts is not None:
            self.added += counts.added
            self.removed += counts.removed
            for name in [each for each in self.names if defined(each) in counts.gone]:
                del self.names[name]
            if len(self.names) < _MOST_NAMES:
                self.names |= counts.names

    def commit(self) -> None:
        """Keep the changes so far: git does not discard them."""
        self.kept = self.added, self.removed, tuple(self.names)

    def put_back_at(self, where: RecordPlace, *, whole: bool) -> None:
        """Drop the changes since the last commit: git restored the file."""
        self.put_back, self.deleted, self.moved_to = where.seq, False, None
        self.turn_ids[where.turn_id] = None
        self.added, self.removed, names = self.kept
        self.names = dict.fromkeys(names)
        if whole:
            self.whole = where.seq
