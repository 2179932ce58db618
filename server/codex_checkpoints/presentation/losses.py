"""What compactions lost, at a terminal; what a compaction of ours did is in `compactions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints import protocol
from codex_checkpoints.presentation.terminal import AMBER, DIM, PLAIN, RED, plain

_WORDS = {True: "lost", False: "kept", None: "?"}
_TINTS = {True: RED, False: DIM, None: AMBER}
_NAMED = 4
"""How many files that were read again are named."""


def loss_lines(losses: protocol.LossList, *, colour: bool) -> list[str]:
    """Return a paragraph a compaction: what it lost, what it kept, and what was read again."""
    lines: list[str] = []
    for each in losses.items:
        lines += [""] if lines else []
        lines.append(_head(each))
        lines += [_entry(*entry, colour=colour) for entry in _entries(each)]
        if each.not_listed:
            lines.append(f"  and {each.not_listed} more that are not listed")
        if each.sealed:
            lines.append("  part of the replacement is encrypted: nobody can tell what is in it")
        lines.append(f"  since then: {_readings(each)}")
        if each.loop:
            warning = f"  ! again and again: {plain(', '.join(each.loop_over))}"
            lines.append(f"{AMBER}{warning}{PLAIN}" if colour else warning)
    return lines or ["No compactions yet."]


def _head(loss: protocol.Loss) -> str:
    number = "taken back" if loss.number is None else f"window {loss.number}"
    how = f"{loss.trigger or '-'}  {loss.strategy or '-'}"
    lost = [each for _, _, each in _entries(loss)]
    gone = f"{lost.count(True)} of {len(lost)} lost" if lost else "nothing was there to lose"
    gone += f", {lost.count(None)} unknown" if None in lost else ""
    return plain(f"{number}  {loss.opened_at or '-'}  {how}  {gone}")


def _entries(loss: protocol.Loss) -> Iterator[tuple[str, str, bool | None]]:
    """Yield what there was: of what kind, its text, whether it is lost."""
    if loss.task is not None:
        yield "task", loss.task.text, loss.task.lost
    for step in loss.open_plan_steps:
        yield "open step", step.text, step.lost
    for file in loss.edited_files:
        yield "changed", f"{file.uri}  ({_because(file.change, file.ref)})", file.lost
    for command in loss.failing_commands:
        code = "failed" if command.exit_code is None else f"exit {command.exit_code}"
        yield "failing", f"{command.command}  ({_because(code, command.ref)})", command.lost


def _because(what: str, ref: str | None) -> str:
    return what if ref is None else f"{what}, {ref}"


def _entry(kind: str, text: str, lost: bool | None, *, colour: bool) -> str:  # noqa: FBT001 - its value
    line = f"  {_WORDS[lost]:<4}  {kind:<9}  {plain(text)}"
    return f"{_TINTS[lost]}{line}{PLAIN}" if colour else line


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
