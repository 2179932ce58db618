"""What happened in a session, at a terminal: history, windows, outline, losses, compactions.

What was lost on the way is in `losses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import orjson

from codex_checkpoints.core.checkpoint.text import redact
from codex_checkpoints.core.rollout.fields import texts_of
from codex_checkpoints.presentation.restores import NOTHING_NAMED, Named
from codex_checkpoints.presentation.terminal import (
    AMBER,
    DIM,
    NARROW,
    PLAIN,
    RED,
    cut,
    fit,
    moment,
    plain,
    room_behind,
)

if TYPE_CHECKING:
    from codex_checkpoints.operations import compactions, histories

_COLUMNS, _FEWER = (24, 8), (11, 6)
"""How wide the kind and the size of an item stand, and on a narrow terminal."""

_WORDS = 100
_SEEN = 4096


def history_lines(history: histories.History, *, width: int | None, colour: bool) -> list[str]:
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


def _standing(history: histories.History) -> list[str]:
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
    windows: histories.WindowList, undone: tuple[str, ...], *, width: int | None
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


def outline_lines(outline: histories.Outline, *, width: int | None) -> list[str]:
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


_LOSS_WORDS = {True: "lost", False: "kept", None: "?"}
_TINTS = {True: RED, False: DIM, None: AMBER}
_NAMED = 4
"""How many files that were read again are named."""


def loss_lines(
    losses: histories.LossList, undone: tuple[str, ...], *, width: int | None, colour: bool
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


def _head(loss: histories.Loss, undone: tuple[str, ...], width: int | None) -> str:
    number = "taken back" if loss.number is None else f"window {loss.number}"
    how = f"{loss.trigger or '-'}  {made_by(loss.strategy, loss.window_id, undone)}"
    lost = [each for *_, each in _entries(loss)]
    gone = f"{lost.count(True)} of {len(lost)} lost" if lost else "nothing was there to lose"
    gone += f", {lost.count(None)} unknown" if None in lost else ""
    return plain(f"{number}  {moment(loss.opened_at, width)}  {how}  {gone}")


def _remarks(loss: histories.Loss) -> Iterator[str]:
    """Yield what else there is to know, a line each."""
    if loss.not_listed:
        yield f"  and {loss.not_listed} more that are not listed"
    if loss.sealed:
        yield "  part of the replacement is encrypted: nobody can tell what is in it"
    yield f"  since then: {_readings(loss)}"


def _entries(loss: histories.Loss) -> Iterator[tuple[str, str, str, bool | None]]:
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
    head, text, why = f"  {_LOSS_WORDS[lost]:<4}  {kind:<9}  ", plain(text), plain(why)
    if width is not None:
        text = fit(text, room_behind(head + why, width)).rstrip()
    return f"{_TINTS[lost]}{head}{text}{why}{PLAIN}" if colour else f"{head}{text}{why}"


def _readings(loss: histories.Loss) -> str:
    if not loss.reads:
        return "no file was read"
    read = "1 file read" if loss.reads == 1 else f"{loss.reads} file reads"
    if not loss.rereads_unchanged:
        return f"{read}, none of an unchanged file again"
    again = f"{loss.rereads_unchanged} of unchanged files again ({loss.bytes:,} bytes)"
    return f"{read}, {again}: {_names(loss.rereads)}"


def _names(rereads: Iterable[histories.Reread]) -> str:
    named = [
        plain(each.uri) + (f" ({each.times} times)" if each.times > 1 else "") for each in rereads
    ]
    more = ["…"] if len(named) > _NAMED else []
    return ", ".join(named[:_NAMED] + more)


_BY_CODEX = {
    "model": ("summary: Codex's own, by its model; it is not the same twice",),
    "provider": ("summary: by the service of Codex's provider; nobody else can read it",),
}


def compaction_lines(done: compactions.Compacted, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what a compaction did, or would do: sizes, what stays and goes, where it goes on."""
    dropped = ", ".join(f"{count} {kind}" for kind, count in _gone(done).items())
    before = f"{done.tokens_before:,} tokens in use ({done.tokens_before_source})"
    after = f"{done.tokens_after:,} ({done.tokens_after_source}), at most {done.bound:,}"
    told = [
        f"{before} → a replacement of {after}; base instructions come on top",
        f"kept {len(done.kept)}, cut {len(done.truncated)}, dropped {len(done.dropped)}"
        + (f" ({dropped})" if dropped else ""),
        f"standing context: {done.standing_context}",
        *_BY_CODEX.get(done.determinism, ()),
        *(f"hook {each.number}: {each.outcome}" for each in done.hooks),
    ]
    if done.compaction_id is None:
        where = "a new session" if done.into == "new" else "the same session"
        return [f"It would go on in {where}; nothing was written.", *map(plain, told)]
    lines = [
        f"Compaction {done.compaction_id} is installed.",
        *told,
        f"go on:     {named.codex(done.resume or '')}",
        f"take back: {named.ours(f'uncompact {done.compaction_id}')}",
    ]
    return [*map(plain, lines)]


def _gone(done: compactions.Compacted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in done.dropped:
        counts[piece.kind] = counts.get(piece.kind, 0) + 1
    return dict(sorted(counts.items()))


def resume_notices(resumed: compactions.Resumed, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what a person is told before going on, one line, with the command that helps."""
    if resumed.notice is None:
        return []
    done = resumed.compacted
    if done is not None and done.compaction_id is not None:
        command = f"uncompact {done.compaction_id}"
    elif done is not None:
        command = f"resume {resumed.source_session_id}"
    elif resumed.continued_by is not None:
        command = f"resume {resumed.continued_by}"
    elif resumed.not_compacted is not None:
        return [plain(resumed.notice)]
    else:
        command = f"compact {resumed.source_session_id}"
    return [plain(f"{resumed.notice} → {named.ours(command)}")]


def uncompacted_lines(done: compactions.Uncompacted, named: Named = NOTHING_NAMED) -> list[str]:
    """Return where the work goes on again."""
    return [
        f"Compaction {plain(done.compaction_id)} is taken back.",
        f"go on: {plain(named.codex(done.resume))}",
    ]
