"""Renders the list of sessions for a terminal, and the result of a change of one."""

from __future__ import annotations

from datetime import datetime

from codex_checkpoints.sections.terminal import DIM, Screen, columns, fit, plain
from codex_checkpoints.service.sessions import summaries
from codex_checkpoints.storage.contract import folder_name

_NARROW = 75
"""Columns below which the name of a folder is cut shorter."""


def session_lines(
    page: summaries.SessionList, screen: Screen, now: float, limit: int | None = None
) -> list[str]:
    """Return one line a session: time, use, folder, subject; people's first.

    For several sessions without a message one line gives their number.  `limit` is the most lines.
    """
    lines: list[str] = []
    silent = sum(map(_is_wordless, page.items))
    items = [item for item in page.items if silent == 1 or not _is_wordless(item)]
    items.sort(key=_changed_at, reverse=True)
    items.sort(key=lambda item: item.background)
    items = items[:limit]
    folders = [plain(folder_name(item.cwd or item.start_folder or "-")) for item in items]
    most = 18 if screen.width is None or screen.width >= _NARROW else 10
    room = min(most, max(map(columns, folders), default=0))
    for item in items:
        folder = fit(plain(folder_name(item.cwd or item.start_folder or "-")), room) + "  "
        age = _age(_changed_at(item), now)
        head = f"{age:>5}  {_meter(item):>5}  {folder}{plain(item.session_id)[:13]}  "
        marks = " ●" if item.live else ""
        marks += f" !{item.suspect_facts}" if item.suspect_facts else ""
        marks += _source(item)
        marks += _origin(item)
        marks += " (Codex cannot resume it)" if item.refused else ""
        label = plain(item.title or item.task or "(no message yet)")
        label = screen.cut_after(head + marks, label)
        lines.append(f"{screen.tinted(DIM, head)}{label}{marks}")
    if silent > 1:
        lines.append(screen.tinted(DIM, f"and {silent} without a message (--json lists them)"))
    return lines[:limit]


def _changed_at(item: summaries.SessionSummary) -> str:
    """Return the time of the last record; a session of ours may have been made later than that."""
    at = item.updated_at or item.file_time
    return at if item.made_by is None else max(at, item.file_time)


def _is_wordless(item: summaries.SessionSummary) -> bool:
    """Return whether a person started Codex and typed nothing."""
    return not (item.title or item.task or item.live or item.background)


_OF_PEOPLE = frozenset({None, "cli", "vscode"})


def _source(item: summaries.SessionSummary) -> str:
    """Return who began a session, unless it is a person at a terminal or in an editor."""
    if item.source == "unknown":
        return " (unknown source)"
    return "" if item.source in _OF_PEOPLE else f" ({plain(item.source or '')})"


def _origin(item: summaries.SessionSummary) -> str:
    """Return that a session is a copy, since it has the first request of its source."""
    if item.undone:
        return " (compaction undone)"
    if item.made_by is None:
        forked = item.forked_from is not None and item.parent_session is None
        return " (fork)" if forked else ""
    known = {"compaction": " (compacted)", "restore": " (branch)", "pull": " (pulled)"}
    return known.get(item.made_by, " (imported)")


def no_sessions(codex_home: str, *, filtered: bool, archived: int) -> str:
    """Return why the list is empty, and the remedy; `archived` sessions are in the home."""
    if archived and not filtered:
        one = archived == 1
        what = "The only session here is" if one else f"All {archived} sessions here are"
        return f"{what} archived; `sessions --archived` lists {'it' if one else 'them'}."
    if filtered:
        return "No session matches; leave out --search, --cwd or --archived to see more."
    return plain(
        f"No session under {codex_home}. Start one with Codex, or name another folder with "
        "--codex-home; `codex-checkpoints doctor` says what was found."
    )


def asks_to_delete(summary: summaries.SessionSummary) -> str:
    """Return the question before a session is deleted."""
    title = fit(plain(summary.title or "(no name)"), 60).rstrip()
    return plain(f"Delete “{title}” ({summary.session_id})? This cannot be undone.")


def moved_line(command: str, summary: summaries.SessionSummary) -> str:
    """Return the change of a session."""
    done = {"delete": "deleted"}.get(command, f"{command}d")
    return plain(f"{done}: {summary.session_id}  {summary.title or '(no name)'}")


def renamed_lines(summary: summaries.SessionSummary, _screen: Screen) -> list[str]:
    """Return the name of a session; without one, its replacement in a list."""
    if summary.named:
        return [plain(f"renamed: {summary.session_id}  {summary.title}")]
    instead = "" if summary.title is None else f"; it is listed by its first words: {summary.title}"
    return [plain(f"name removed: {summary.session_id}{instead}")]


def named_here_alone() -> str:
    """Return that Codex does not see a name, and the remedy."""
    return (
        "Codex keeps the names of sessions in this format in its own database, which is not"
        " written: rename it in Codex as well to see the name there."
    )


def change_line(session_id: str, words: str, reason: str, screen: Screen) -> str:
    """Return one change of a followed session."""
    head = f"{plain(session_id)[:13]}  {plain(reason):<9}"
    return f"{screen.tinted(DIM, head)}  {plain(words)}"


def _age(stamp: str, now: float) -> str:
    try:
        seconds = max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except (ValueError, OverflowError):
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _meter(item: summaries.SessionSummary) -> str:
    if item.context_tokens is None or not item.context_window:
        return "-"
    if item.context_tokens > item.context_window:
        return ">100%"
    mark = "~" if item.context_tokens_source == "estimated" else ""
    return f"{mark}{item.context_tokens * 100 // item.context_window}%"
