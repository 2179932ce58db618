"""What happened in a session, at a terminal: its history, its windows, its turns in few words.

What was lost on the way is in `losses`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.rollout.fields import texts_of
from codex_checkpoints.presentation.terminal import (
    DIM,
    NARROW,
    PLAIN,
    cut,
    fit,
    moment,
    plain,
    room_behind,
)

if TYPE_CHECKING:
    from codex_checkpoints import protocol

_COLUMNS, _FEWER = (24, 8), (11, 6)
"""How wide the kind and the size of an item stand, and on a narrow terminal."""

_WORDS = 100
_SEEN = 4096


def history_lines(history: protocol.History, *, width: int | None, colour: bool) -> list[str]:
    """Return one line an item: whose it is, how many bytes, its first words without secrets."""
    kinds, sizes = _FEWER if width is not None and width < NARROW else _COLUMNS
    lines: list[str] = []
    for item in history.items:
        who = plain(str(item.get("role") or item["type"]))
        head = f"{fit(who, kinds)}  {len(orjson.dumps(item)):>{sizes}}  "
        words = plain(redact(_words(item)))
        room = _WORDS if width is None else room_behind(head, width)
        words = fit(words, room).rstrip()
        lines.append(f"{DIM}{head}{PLAIN}{words}" if colour else f"{head}{words}".rstrip())
    return [*lines, "", *_standing(history)] if lines else _standing(history)


def _words(item: Mapping[str, object]) -> str:
    """Return how an item begins, with enough of it to recognise a secret."""
    parts = item.get("content") or item.get("output") or item.get("summary")
    texts = texts_of(parts) or tuple(
        str(item[key]) for key in ("name", "arguments", "input", "action") if item.get(key)
    )
    return " ".join(texts)[:_SEEN]


def _standing(history: protocol.History) -> list[str]:
    """Return how full the window is, and which one it is."""
    windows, tokens = history.windows, history.context_tokens
    mark = "~" if history.context_tokens_source == "estimated" else ""
    full = "-" if tokens is None else f"{mark}{tokens:,}"
    room = "" if history.context_window is None else f" of {history.context_window:,}"
    flag = ", more than the window holds" if history.context_tokens_flagged else ""
    current = "" if windows.current is None else f" ({plain(windows.current)})"
    number = "-" if windows.number is None else str(windows.number)
    made = ["part of it was made of user messages"] if history.reconstructed else []
    return [f"tokens  {full}{room}{flag}", f"window  {number}{current}", *made]


def window_lines(
    windows: protocol.WindowList, undone: tuple[str, ...], *, width: int | None
) -> list[str]:
    """Return one line a window: number, when, what opened it, tokens before and after, id.

    A narrow terminal gets two, without the id.  `undone` are the ids of windows that were opened
    by taking a compaction back.
    Below it stand the compaction of ours that opened it, and what Codex was given in it, if any.
    """
    lines: list[str] = []
    for each in windows.items:
        head = f"{each.number:>3}  {moment(each.opened_at, width):<{24 if width is None else 20}}"
        maker = made_by(each.strategy, each.window_id, undone)
        how = plain(f"{each.trigger or '-':<9} {maker:<10}")
        sizes = f"{_number(each.tokens_before):>9} → {_number(each.tokens_after):>9}"
        if width is not None and width < NARROW:
            lines += [head, cut(f"     {' '.join(f'{how} {sizes}'.split())}", width)]
        else:
            lines.append(cut(f"{head}  {how} {sizes}  {plain(each.window_id or '-')}", width))
        if each.compaction_id is not None:
            lines.append(f"     compaction {plain(each.compaction_id)}")
        if each.received is not None:
            given = each.received
            state = "as it is now" if given.is_current else "changed since"
            said = f"Codex was given {given.size:,} bytes, {state}, {given.digest[:15]}"
            lines.append(cut(f"     {moment(given.at, width)}  {plain(said)}", width))
    return lines


def made_by(strategy: str | None, window_id: str | None, undone: tuple[str, ...]) -> str:
    """Return who made what a window begins with; an undo has no strategy, and a word all the same.

    `undone` are the ids of windows that were opened by taking a compaction back.
    """
    return plain(strategy or ("undo" if window_id in undone else "-"))


def outline_lines(outline: protocol.Outline, *, width: int | None) -> list[str]:
    """Return one line a stretch of older turns, then one a turn: which, in which window, words."""
    heads = [
        (f"{each.first}-{each.last}", f"{each.first_window}-{each.last_window}", each.text)
        for each in outline.chunks
    ]
    heads += [(str(each.number), str(each.window), each.text) for each in outline.recent]
    lines: list[str] = []
    for turns, windows, text in heads:
        head = f"{turns:>11}  {windows:>7}  "
        room = _WORDS if width is None else room_behind(head, width)
        lines.append(f"{head}{fit(plain(redact(text)), room)}".rstrip())
    return lines or ["No turns yet."]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
