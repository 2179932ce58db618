"""Search the lines of session files: bytes first, JSON only of lines that may hit (RCL-2).

A line without the piece of a needle is numbered by its first bytes and not parsed, unless it tells
of turns or calls.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import Observation, name_of
from codex_checkpoints.core.digest.gathering import CALLS
from codex_checkpoints.core.digest.ignoring import Ignoring
from codex_checkpoints.core.digest.needle import Needle
from codex_checkpoints.core.digest.recall import MOST_HITS, Entry, Kind, shown
from codex_checkpoints.core.rollout.fields import text_of
from codex_checkpoints.core.rollout.parsing import turn_id_of
from codex_checkpoints.core.rollout.reader import Fold, Line
from codex_checkpoints.values import evolve


def with_lines(entry: Entry, needle: Needle, ignored: Ignoring) -> Entry | None:
    """Return an entry with those of its lines that hold a text and may be shown, if any."""
    if not any(True for _ in needle.lines(entry.text)):
        return None
    may = shown(entry, ignored)
    text = "" if may is None else "\n".join(islice(needle.lines(may.text), MOST_HITS))
    return evolve(entry, text=text) if text else None


_TURNS = frozenset(
    {
        "task_started",
        "turn_started",
        "task_complete",
        "turn_complete",
        "turn_aborted",
        "thread_rolled_back",
        "user_message",
    }
)
"""The events that tell where turns begin and end."""


def passing_over(
    may_hit: Callable[[bytes], bool],
) -> Callable[[bytes, str, str | None, str | None], bool]:
    """Return which lines a reader passes over that wants hits, their turns and their calls."""

    def passes_over(raw: bytes, kind: str, tag: str | None, inner: str | None) -> bool:
        if kind == "response_item":
            told = tag in CALLS or (tag == "message" and inner != "assistant")
        elif kind == "event_msg":
            told = tag in _TURNS or inner == "UserMessage"
        else:
            told = kind != "compacted"
        return not told and not may_hit(raw)

    return passes_over


_SEARCHED: Final[dict[Kind, str]] = {
    "call": "command",
    "patch": "command",
    "summary": "assistant",
}


def kind_of(entry: Entry) -> str:
    """Return what a hit is called: a patch is a command, and a summary the agent's word."""
    return _SEARCHED.get(entry.kind, entry.kind)


class FileUses(Fold):
    """Collects where a session read or changed a file, once a turn."""

    def __init__(self, replay: Replay, needle: Needle, wanted: Callable[[Line], bool]) -> None:
        """Follow a replay that has read nothing yet."""
        self._state, self._needle, self._wanted = replay.state, needle, wanted
        self._observed: list[Observation] = []
        self.entries: dict[tuple[str | None, str], Entry] = {}
        replay.state.observers.append(self._observed.append)
        replay.folds.append(self)

    def take(self, line: Line) -> None:
        """Take what was observed with a line."""
        if not self._observed:
            return
        observed = tuple(self._observed)
        self._observed.clear()
        if not self._wanted(line):
            return
        turn = self._state.turns.at(
            turn_id_of(line.payload) or text_of(line.payload.get("turn_id"))
        )
        turn_id = None if turn is None else turn.turn_id
        for one in observed:
            for each in one.seen():
                depends = each.only_if is not None and each.only_if[0] != "no folder"
                uri = name_of(each, one.place)[0] if each.kind == "file" and not depends else None
                if uri is not None and self._is_meant(uri):
                    text = f"{'read' if each.action == 'read' else 'changed'} {uri}"
                    self.entries.pop((turn_id, text), None)
                    self.entries[turn_id, text] = Entry(
                        line.seq, turn_id, "file", (), text, stamp=line.stamp
                    )

    def _is_meant(self, uri: str) -> bool:
        """Return whether a file is the one that was named, whole or by the end of its path."""
        base, named = self._state.base, self._needle
        whole = uri if base is None or is_outside(uri) else f"{base.rstrip('/')}/{uri}"
        whole = whole.replace("\\", "/")
        if named.text[1:2] == ":":
            return whole.lower() == named.text.lower()
        if named.text.startswith("/"):
            return len(whole) == len(named.text) and named.find(whole) == 0
        end = f"/{whole}"[-len(named.text) - 1 :]
        return end[:1] == "/" and named.find(end) == 1


def is_outside(uri: str) -> bool:
    """Return whether the uri of a file is an absolute path."""
    return uri.startswith("/") or uri[1:3] == ":/"
