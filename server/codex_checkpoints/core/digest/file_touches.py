"""Reads the changes of each file from an observation: the only account of files.

`changes`, the digest, the timeline and the search for files all use it.  A move to itself is an
update; a file that one patch deletes and adds again counts as rewritten; the lines of a patch that
moves a file belong to its new name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from codex_checkpoints.core.agents.codex.items import EDITS, Action, Seen
from codex_checkpoints.core.checkpoint.state import Observation, TurnPlace, name_of
from codex_checkpoints.core.fields import Json, text_of
from codex_checkpoints.core.shell.script import BEGIN

_DELETED: Final = re.compile(r"\*\*\* Delete File: (.+?)(?:\\[rn]|[\r\n]|\Z)")
_ADDED: Final = re.compile(r"\*\*\* Add File: (.+?)(?:\\[rn]|[\r\n]|\Z)")


@frozen
class Touched:
    """The effect of a call on one file; its patch lists the rows of the file under `name`.

    `anew`: none of the earlier content remains.  `moved_from` and `moved_to` are uris, the other
    end of a move.  `onto` is the uri of the target of a copy or a move by a command: if it is a
    folder, it is not a file of that name.  `added` is the hash of the whole text of a file that a
    patch added.
    """

    uri: str
    name: str
    action: Action
    anew: bool = False
    moved_from: str | None = None
    moved_to: str | None = None
    onto: str | None = None
    added: str | None = None

    @property
    def edits(self) -> bool:
        """Return whether the file was changed."""
        return self.action in EDITS


def rewritten_by(payload: Json) -> frozenset[str] | None:
    """Return the files that a call's patch deletes and adds again; None without a patch.

    Codex records such a file as added.
    """
    text = text_of(payload.get("input")) or text_of(payload.get("arguments")) or ""
    if BEGIN not in text:
        return None
    deleted = {path.strip() for path in _DELETED.findall(text)}
    return frozenset(path for path in map(str.strip, _ADDED.findall(text)) if path in deleted)


def touched_in(observed: Observation, rewritten: frozenset[str] = frozenset()) -> Iterator[Touched]:
    """Yield the effect of a call on each file, in its order."""
    files = [(each, uri) for each in observed.seen() if (uri := _uri_of(each, observed.place))]
    again = {name_of(Seen("file", name, "add"), observed.place)[0] for name in rewritten}
    added = {uri for each, uri in files if each.action == "add"}
    again |= {uri for each, uri in files if each.action == "delete" and uri in added}
    source: tuple[Seen, str] | None = None
    for each, uri in files:
        onto = None if each.only_if is None else name_of(each.condition, observed.place)[0]
        if each.action == "move" and source is None:
            source = each, uri
        elif each.action == "move" and source is not None:
            (first, start), source = source, None
            if start == uri:
                yield Touched(uri, first.name, "update", onto=onto)
            else:
                yield Touched(start, each.name, "move", moved_to=uri, onto=onto)
                yield Touched(uri, first.name, "move", moved_from=start, onto=onto)
        elif uri in again:
            if each.action == "add":
                yield Touched(uri, each.name, "update", anew=True, added=each.hash)
        else:
            anew = each.action in {"add", "delete"}
            yield Touched(uri, each.name, each.action, anew, onto=onto, added=each.hash)
    if source is not None:  # the other end's name cannot be kept
        yield Touched(source[1], source[0].name, "move")


def _uri_of(seen: Seen, place: TurnPlace) -> str | None:
    """Return the uri of a file; None if it is a file only if something exists there now."""
    depends = seen.only_if is not None and seen.only_if[0] != "no folder"
    return None if seen.kind != "file" or depends else name_of(seen, place)[0]


def may_have_changed_more(observed: Observation) -> bool:
    """Return whether a call ran a command that may have changed files without naming them."""
    return any(each.more for each in observed.seen())
