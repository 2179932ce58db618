"""What compactions lost, at a terminal; what a compaction of ours did is in `compactions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from codex_checkpoints.presentation.histories import made_by
from codex_checkpoints.presentation.terminal import (
    AMBER,
    DIM,
    PLAIN,
    RED,
    cut,
    fit,
    moment,
    plain,
    room_behind,
)

if TYPE_CHECKING:
    from codex_checkpoints import protocol

_WORDS = {True: "lost", False: "kept", None: "?"}
_TINTS = {True: RED, False: DIM, None: AMBER}
_NAMED = 4
"""How many files that were read again are named."""


def loss_lines(
    losses: protocol.LossList, undone: tuple[str, ...], *, width: int | None, colour: bool
) -> list[str]:
    """Return a paragraph a compaction: what it lost, what it kept, and what was read again.

    `undone` are the ids of windows that were opened by taking a compaction back.
    """
    lines: list[str] = []
    for each in losses.items:
        lines += [""] if lines else []
        lines.append(cut(_head(each, undone, width), width))
        lines += [_entry(*entry, width=width, colour=colour) for entry in _entries(each)]
        lines += [cut(line, width) for line in _remarks(each)]
        if each.loop:
            warning = f"  ! again and again: {plain(', '.join(each.loop_over))}"
            lines.append(f"{AMBER}{warning}{PLAIN}" if colour else warning)
    return lines or ["No compactions yet."]


def _head(loss: protocol.Loss, undone: tuple[str, ...], width: int | None) -> str:
    number = "taken back" if loss.number is None else f"window {loss.number}"
    how = f"{loss.trigger or '-'}  {made_by(loss.strategy, loss.window_id, undone)}"
    lost = [each for *_, each in _entries(loss)]
    gone = f"{lost.count(True)} of {len(lost)} lost" if lost else "nothing was there to lose"
    gone += f", {lost.count(None)} unknown" if None in lost else ""
    return plain(f"{number}  {moment(loss.opened_at, width)}  {how}  {gone}")


def _remarks(loss: protocol.Loss) -> Iterator[str]:
    """Yield what else there is to know, a line each."""
    if loss.not_listed:
        yield f"  and {loss.not_listed} more that are not listed"
    if loss.sealed:
        yield "  part of the replacement is encrypted: nobody can tell what is in it"
    yield f"  since then: {_readings(loss)}"


def _entries(loss: protocol.Loss) -> Iterator[tuple[str, str, str, bool | None]]:
    """Yield what there was: of what kind, its text, how it is known, whether it is lost."""
    if loss.task is not None:
        yield "task", loss.task.text, "", loss.task.lost
    for step in loss.open_plan_steps:
        yield "open step", step.text, "", step.lost
    for file in loss.edited_files:
        yield "changed", file.uri, _because(file.change, file.ref), file.lost
    for command in loss.failing_commands:
        code = "failed" if command.exit_code is None else f"exit {command.exit_code}"
        yield "failing", command.command, _because(code, command.ref), command.lost


def _because(what: str, ref: str | None) -> str:
    return f"  ({what})" if ref is None else f"  ({what}, {ref})"


def _entry(  # noqa: PLR0913 - what there is to say of one, and where
    kind: str,
    text: str,
    why: str,
    lost: bool | None,  # noqa: FBT001 - its value
    *,
    width: int | None,
    colour: bool,
) -> str:
    """Return a line; the text is cut to the terminal, the record behind it never."""
    head, text, why = f"  {_WORDS[lost]:<4}  {kind:<9}  ", plain(text), plain(why)
    if width is not None:
        text = fit(text, room_behind(head + why, width)).rstrip()
    return f"{_TINTS[lost]}{head}{text}{why}{PLAIN}" if colour else f"{head}{text}{why}"


def _readings(loss: protocol.Loss) -> str:
    if not loss.reads:
        return "no file was read"
    read = "1 file read" if loss.reads == 1 else f"{loss.reads} file reads"
    if not loss.rereads_unchanged:
        return f"{read}, none of an unchanged file again"
    again = f"{loss.rereads_unchanged} of unchanged files again ({loss.bytes:,} bytes)"
    return f"{read}, {again}: {_names(loss.rereads)}"


def _names(rereads: Iterable[protocol.Reread]) -> str:
    named = [
        plain(each.uri) + (f" ({each.times} times)" if each.times > 1 else "") for each in rereads
    ]
    more = ["…"] if len(named) > _NAMED else []
    return ", ".join(named[:_NAMED] + more)
