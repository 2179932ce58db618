"""Renders the events of a session: history, windows, outline, losses, compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from shlex import quote

import orjson

from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.compaction.replacement_report import CompactionPiece
from codex_checkpoints.core.compaction.token_budget import Outline
from codex_checkpoints.core.fields import texts_of
from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.operations import history as histories
from codex_checkpoints.operations.compaction import Uncompacted
from codex_checkpoints.sections.terminal import (
    DIM,
    Screen,
    columns,
    fit,
    moment,
    moment_columns,
    plain,
)
from codex_checkpoints.service.compaction.request import Compacted
from codex_checkpoints.service.compaction.resume import Resumed
from codex_checkpoints.service.history.changes import FileChanges

_WORDS = 100
"""Columns of a text without a terminal."""
_SEEN = 4096


def history_lines(history: histories.History, screen: Screen) -> list[str]:
    """Return one line an item: its author, its bytes, its first words without secrets."""
    lines: list[str] = []
    for item in history.items:
        who = plain(str(item.get("role") or item["type"]))
        head = f"{fit(who, 24)}  {len(orjson.dumps(item)):>8}  "
        words = screen.cut_after(head, plain(redact(_words(item))), _WORDS)
        lines.append(f"{screen.tinted(DIM, head)}{words}".rstrip())
    lines += [""] if lines else []
    windows, tokens = history.windows, history.context_tokens
    mark = "~" if history.context_tokens_source == "estimated" else ""
    full = "-" if tokens is None else f"{mark}{tokens:,}"
    room = "" if history.context_window is None else f" of {history.context_window:,}"
    flag = ", more than the window holds" if history.context_tokens_flagged else ""
    current = "" if windows.current is None else f" ({plain(windows.current)})"
    number = "-" if windows.number is None else str(windows.number)
    lines += [f"tokens  {full}{room}{flag}", f"window  {number}{current}"]
    return (
        [*lines, "part of it was rebuilt from the user's messages"]
        if history.reconstructed
        else lines
    )


def _words(item: Mapping[str, object]) -> str:
    """Return the beginning of an item, long enough to recognise a secret."""
    parts = item.get("content") or item.get("output") or item.get("summary")
    texts = texts_of(parts) or tuple(
        str(item[key]) for key in ("name", "arguments", "input", "action") if item.get(key)
    )
    return " ".join(texts)[:_SEEN]


def window_lines(
    windows: histories.WindowList,
    screen: Screen,
    undone: Container[str | None],
    elsewhere: Iterable[tuple[str, str, bool]],
) -> list[str]:
    """Return one line a window: time, opener, tokens, id.

    Below it come the compaction of ours that opened it, and the view that Codex was given in it, if
    any.  `undone` are the ids of windows that an undo opened; `elsewhere` are the compactions that
    went on in a new session, which have no window here, and which were undone.
    """
    opened = f"  #  {'opened':<{moment_columns(screen)}}"
    names = (opened, f"  {'how':<13}  {'made by':<10}", f" {'before':>9} → {'after':>9}", "id")
    lines = [screen.tinted(DIM, _window(screen, *names))]
    for each in windows.items:
        lines.append(
            _window(
                screen,
                f"{each.number:>3}  {moment(each.opened_at, screen):<{moment_columns(screen)}}",
                f"  {_WAYS.get(each.trigger, '-'):<13}  {_maker(each, undone):<10}",
                f" {_number(each.tokens_before):>9} → {_number(each.tokens_after):>9}",
                each.window_id or "-",
            )
        )
        if each.compaction_id is not None:
            lines.append(f"     compaction {plain(each.compaction_id)}{_UNDONE[each.undone]}")
        if each.received is not None:
            given = each.received
            state = "as it is now" if given.is_current else "changed since"
            text = f"Codex was given {given.size:,} bytes ({state}), {given.digest[:15]}"
            lines.append(screen.cut(f"     {moment(given.at, screen)}  {plain(text)}"))
    for compaction_id, session_id, was_undone in elsewhere:
        lines.append(f"     compaction {plain(compaction_id)}{_UNDONE[was_undone]}")
        lines.append(f"     went on in session {plain(session_id)}")
    return lines


def _window(screen: Screen, opened: str, how: str, sizes: str, window_id: str) -> str:
    """Return a row of the table, on a narrow terminal without the columns that do not fit."""
    rows = (f"{opened}{how}{sizes}  {window_id}", f"{opened}{how}{sizes}")
    fitting = (row for row in rows if screen.width is None or columns(row) < screen.width)
    return screen.cut(plain(next(fitting, f"{opened}{sizes}")))


_UNDONE = {False: "", True: ", undone since"}
_WAYS: dict[str | None, str] = {
    "manual": "asked for",
    "pre_turn": "before a turn",
    "mid_turn": "during a turn",
}
_MAKERS: dict[str | None, str] = {
    "checkpoint": "checkpoint",
    "codex": "summary",
    "local": "Codex",
    "remote": "provider",
    "fresh": "empty",
}


def _maker(window: histories.Window, undone: Container[str | None] = ()) -> str:
    """Return the author of the beginning of a window; an undo has no strategy."""
    return _MAKERS.get(window.strategy, "undo" if window.window_id in undone else "-")


def outline_lines(outline: Outline, screen: Screen) -> list[str]:
    """Return one line for each group of older turns, then one a turn: number, window, words.

    The window is left out if there is only one.
    """
    heads = [
        (f"{each.first}-{each.last}", f"{each.first_window}-{each.last_window}", each.text)
        for each in outline.chunks
    ]
    heads += [(str(each.number), str(each.window), each.text) for each in outline.recent]
    several = len({windows for _, windows, _ in heads}) > 1
    names = f"{'turns':>11}  " + f"{'windows':>7}  " * several + "request"
    lines = [screen.tinted(DIM, names)] if heads else []
    for turns, windows, text in heads:
        head = f"{turns:>11}  " + f"{windows:>7}  " * several
        lines.append(f"{head}{screen.cut_after(head, plain(redact(text)), _WORDS)}".rstrip())
    return lines or ["No turns yet."]


_STANDING = {"same": "as the session left it", "gone": "no longer there", "unknown": ""}


def change_lines(changes: FileChanges, screen: Screen, uri: str | None = None) -> list[str]:
    """Return one line a file: its change, the turns, and whether it changed since.

    Below it come its patches, if one file, `uri`, was asked for.
    """
    lines: list[str] = []
    for each in changes.files:
        what = each.kind if each.moved_from is None else f"moved from {each.moved_from}"
        what = what if each.moved_to is None else f"moved to {each.moved_to}"
        back = f"put back by git {each.put_back}" if each.put_back else ""
        if each.kind == "put_back":
            what, back = back, ""
        counts = f" +{each.added} -{each.removed}" if each.added or each.removed else ""
        turns = ", ".join(map(str, each.turns))
        of_turns = f"turn{'s' if len(each.turns) > 1 else ''} {turns}" if turns else ""
        seen = "the session saw it" if each.seen_in is None else f"turn {each.seen_in}"
        now = _STANDING.get(each.now, f"changed since {seen}")
        again = f"{back}, then changed again" if back else ""
        about = "  ".join(filter(None, (f"{what}{counts}", of_turns, again, now)))
        lines += screen.folded(plain(each.uri), plain(about))
        for patch in each.patches:
            turn = "" if patch.turn is None else f"turn {patch.turn}  "
            lines += ["", screen.tinted(DIM, plain(f"{turn}{patch.ref}"))]
            is_back = patch.ref == each.put_back
            by_command = "(changed by a command; the session does not tell how)"
            untold = "(put back by git)" if is_back else by_command
            text = "(moved)" if patch.text == "" else patch.text
            lines += map(plain, [untold] if text is None else text.split("\n"))
    lines += [f"and {changes.left} more"] if changes.left else []
    if changes.unnamed:
        commands = "1 command" if changes.unnamed == 1 else f"{changes.unnamed} commands"
        lines += [f"{commands} may have changed more"]
    if lines or uri is None:
        return lines or ["No file was changed."]
    return [plain(f"{uri} was not changed here. Without PATH, all changed files are listed.")]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


_BY_CODEX = {
    "model": ("summary: written by Codex's model; it would not write the same twice",),
    "provider": ("summary: made by the service of the model's provider, which alone can read it",),
}


"""Kinds of items that Codex writes again in the next turn: its instructions and environment."""


def _sized(pieces: Sequence[CompactionPiece]) -> str:
    """Return how many items there are, and their tokens; for cut items the rest of them."""
    size = sum(piece.tokens - piece.cut_tokens for piece in pieces)
    return f"{counted(len(pieces), 'item')}, {size:,} tokens" if pieces else "nothing"


def _added(done: Compacted) -> str:
    """Return the parts of a replacement that are none of the old items."""
    size = f"{done.tokens_added:,} tokens"
    others = len(done.replacement) - len(done.kept) - len(done.truncated) - 1
    if done.strategy == "checkpoint" and others > 0:
        return f"goal, plan or task in full and a summary, {size}"
    return f"a summary of {size}"


def compaction_lines(done: Compacted, screen: Screen) -> list[str]:
    """Return the effects of a compaction: sizes, kept and dropped items, and the next session."""
    kinds = Counter(piece.kind for piece in done.dropped)
    counts = (f"{kind.replace('_', ' ')}: {count}" for kind, count in sorted(kinds.items()))
    left_out = ", ".join(counts)
    again = done.tokens_sent_again
    lines = [
        *(() if done.remark_text is None else (f"! {done.remark_text}",)),
        done.size_text,
        f"kept: {_sized(done.kept)}",
        *([f"cut in the middle: {_sized(done.truncated)}"] if done.truncated else []),
        f"left out: {_sized(done.dropped)}" + (f" ({left_out})" if left_out else ""),
        *(
            [f"sent again by the next turn: about {again:,} tokens of these (counted in the total)"]
            if again
            else []
        ),
        f"added: {_added(done)}",
        *_BY_CODEX.get(done.determinism, ()),
        *(f"hook {each.number}: {each.outcome}" for each in done.hooks),
        *(() if done.contents is None else (each.message for each in done.contents.warnings)),
    ]
    lines = [done.headline, *lines]
    if done.compaction_id is not None:
        lines = [
            f"Compacted: {done.compaction_id}",
            *lines,
            f"continue:  {screen.codex(done.resume or '')}",
            f"undo:      {screen.ours(f'uncompact {done.compaction_id}')}",
        ]
    return [*map(plain, lines)]


def resume_line(resumed: Resumed, screen: Screen) -> str:
    """Return the command that resumes the session, in its folder if that is on this machine."""
    command = screen.codex(resumed.resume)
    if resumed.cwd is None or resumed.cwd_gone:
        return plain(command)
    return plain(f"cd {quote(resumed.cwd)} && {command}")


def gone_folder(resumed: Resumed) -> list[str]:
    """Return that the folder of the session is gone, nothing if it is here."""
    if not resumed.cwd_gone:
        return []
    return [plain(f"{resumed.cwd} is gone: Codex goes on in the folder where you run it.")]


def resume_notices(resumed: Resumed, screen: Screen) -> list[str]:
    """Return the notice before going on, with the command that helps."""
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
    return [plain(f"{resumed.notice} → {screen.ours(command)}")]


def uncompacted_lines(done: Uncompacted, screen: Screen) -> list[str]:
    """Return the session in which the work continues."""
    return [
        f"Compaction {plain(done.compaction_id)} was undone.",
        f"continue: {plain(screen.codex(done.resume))}",
    ]
