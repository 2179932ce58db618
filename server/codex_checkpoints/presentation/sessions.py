"""Sessions at a terminal: the list, one that was moved, one that changed."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from codex_checkpoints.presentation.terminal import DIM, NARROW, PLAIN, fit, plain, room_behind

if TYPE_CHECKING:
    from codex_checkpoints import protocol

NO_SESSION_FITS = "No session fits; leave out --search, --cwd or --archived to see more."


def session_lines(
    page: protocol.SessionList, now: float, *, width: int | None, colour: bool
) -> list[str]:
    """Return one line a session: when, how full, in which folder, what about."""
    lines: list[str] = []
    for item in page.items:
        age = f"{_age(item.updated_at, now):>5}"
        meter = f"{_meter(item):>5}"
        folder = fit(plain(os.path.basename((item.cwd or "").rstrip("/\\")) or "-"), 18) + "  "
        folder = "" if width is not None and width < NARROW else folder
        label = plain(item.title or item.task or "(no message yet)")
        marks = "".join(
            mark
            for shown, mark in (
                (item.live, " ●"),
                (item.suspect_facts > 0, f" !{item.suspect_facts}"),
                (item.parent_session is not None, " (subagent)"),
            )
            if shown
        )
        head = f"{age}  {meter}  {folder}{plain(item.session_id)[:13]}  "
        room = None if width is None else room_behind(head + marks, width)
        label = label if room is None else fit(label, room).rstrip()
        lines.append(f"{DIM}{head}{PLAIN}{label}{marks}" if colour else f"{head}{label}{marks}")
    return lines


def no_sessions(codex_home: str) -> str:
    """Say that there is none at all, and what to do."""
    return plain(
        f"No session under {codex_home}. Start one with Codex, or name another folder with "
        "--codex-home; `codex-checkpoints doctor` says what was found."
    )


def moved_line(command: str, summary: protocol.SessionSummary) -> str:
    """Return what was done to a session."""
    done = {"delete": "deleted"}.get(command, f"{command}d")
    return plain(f"{done}: {summary.session_id}  {summary.title or '(no name)'}")


def renamed_line(summary: protocol.SessionSummary) -> str:
    """Return what a session is called now; without a name, what stands in its place in a list."""
    if summary.named:
        return plain(f"renamed: {summary.session_id}  {summary.title}")
    instead = "" if summary.title is None else f"; it is listed by its first words: {summary.title}"
    return plain(f"name taken back: {summary.session_id}{instead}")


def change_line(session_id: str, task: str | None, reason: str, *, colour: bool) -> str:
    """Return one change of a followed session; `task` is what was said last in it, if anything."""
    return _change(session_id, task or "(no message yet)", reason, colour=colour)


def gone_line(session_id: str, reason: str, *, colour: bool) -> str:
    """Return that a followed session is there no more."""
    return _change(session_id, "gone", reason, colour=colour)


def _change(session_id: str, words: str, reason: str, *, colour: bool) -> str:
    what = plain(words)
    head = f"{plain(session_id)[:13]}  {plain(reason):<9}"
    return f"{DIM}{head}{PLAIN}  {what}" if colour else f"{head}  {what}"


def _age(stamp: str, now: float) -> str:
    try:
        seconds = max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except (ValueError, OverflowError):
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _meter(item: protocol.SessionSummary) -> str:
    if item.context_tokens is None or not item.context_window:
        return "-"
    mark = "~" if item.context_tokens_source == "estimated" else ""
    return f"{mark}{item.context_tokens * 100 // item.context_window}%"
