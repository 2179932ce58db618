"""Text for people at a terminal: lists, findings, changes, a progress bar.

Whatever comes from a rollout or a folder is untrusted here as everywhere: nothing of it reaches a
terminal as a control character.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import TextIO

from codex_checkpoints import protocol
from codex_checkpoints.service.catalogue import Progress
from codex_checkpoints.service.listing import Page, Summary
from codex_checkpoints.threads.index import Row

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_DIM, _BOLD, _AMBER, _RED, _GREEN, _PLAIN = (
    "\x1b[2m",
    "\x1b[1m",
    "\x1b[33m",
    "\x1b[31m",
    "\x1b[32m",
    "\x1b[0m",
)
_NARROW = 60


def plain(text: str) -> str:
    """Return text without anything a terminal would obey."""
    return _CONTROLS.sub(" ", text).encode(errors="replace").decode()


def session_lines(page: Page, now: float, *, width: int | None, colour: bool) -> list[str]:
    """Return one line a session: when, how full, in which folder, what about."""
    lines: list[str] = []
    for item in page.items:
        age = f"{_age(item.updated_at, now):>5}"
        meter = f"{_meter(item):>5}"
        folder = _fit(plain(os.path.basename((item.cwd or "").rstrip("/\\")) or "-"), 18)
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
        head = f"{age}  {meter}  {folder}  {plain(item.session_id)[:13]}  "
        room = None if width is None else max(width - _columns(head + marks) - 1, 20)
        label = label if room is None else _fit(label, room).rstrip()
        lines.append(f"{_DIM}{head}{_PLAIN}{label}{marks}" if colour else f"{head}{label}{marks}")
    return lines


def no_sessions(codex_home: str, options: argparse.Namespace) -> str:
    """Say why a list is empty, and what to do."""
    if options.search or options.cwd or options.archived:
        return "No session fits; leave out --search, --cwd or --archived to see more."
    return (
        f"No session under {codex_home}. Start one with Codex, or name another folder with "
        "--codex-home; `codex-checkpoints doctor` says what was found."
    )


def doctor_lines(report: protocol.DoctorReport, *, colour: bool) -> list[str]:
    """Return a diagnosis: where we look, how much is there, each finding with its way out."""
    tints = {"error": _RED, "warning": _AMBER, "info": _DIM} if colour else {}
    lines = [
        f"Codex home    {plain(report.codex_home)}",
        f"state folder  {plain(report.state_dir)}",
        f"sessions      {report.sessions}",
    ]
    for finding in report.findings:
        tint, end = tints.get(finding.severity, ""), _PLAIN if colour else ""
        place = "" if finding.path is None else f"\n    {plain(finding.path)}"
        lines.append(
            f"\n{tint}{finding.severity:<8}{finding.code}{end}\n    {plain(finding.message)}"
            f"{place}\n    → {plain(finding.way_out)}"
        )
    if not report.findings:
        lines.append("\nNothing to report: everything that is there can be read.")
    return lines


def change_line(session_id: str, row: Row | None, reason: str, *, colour: bool) -> str:
    """Return one change of a followed session."""
    what = "gone" if row is None else plain(row.task or "(no message yet)")
    head = f"{plain(session_id)[:13]}  {reason:<9}"
    return f"{_DIM}{head}{_PLAIN}  {what}" if colour else f"{head}  {what}"


class LogLine(logging.Formatter):
    """A line of the log; what it quotes of a rollout or a folder is as untrusted as elsewhere."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line, without anything a terminal would obey."""
        return plain(super().formatMessage(record))


class Bar:
    """A progress bar on one line of a terminal, drawn only when there is something to wait for."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on this terminal."""
        self._stream = stream
        self._drawn = False

    def show(self, progress: Progress) -> None:
        """Draw how far an index is."""
        if progress.of_files <= 1 or (progress.files >= progress.of_files and not self._drawn):
            return
        share = 1.0 if progress.of_bytes == 0 else progress.bytes / progress.of_bytes
        full = round(share * 24)
        bar = "█" * full + "░" * (24 - full)
        text = f"reading sessions {bar} {progress.files}/{progress.of_files}"
        self._stream.write(f"\r{text}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _age(stamp: str, now: float) -> str:
    try:
        seconds = max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except (ValueError, OverflowError):
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _meter(item: Summary) -> str:
    if item.context_tokens is None or not item.context_window:
        return "-"
    mark = "~" if item.context_tokens_source == "estimated" else ""
    return f"{mark}{item.context_tokens * 100 // item.context_window}%"


def _fit(text: str, room: int) -> str:
    """Cut or fill to `room` columns; wide characters take two."""
    if _columns(text) <= room:
        return text + " " * (room - _columns(text))
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > room - 1:
            break
        kept += character
    return f"{kept}…" + " " * (room - 1 - _columns(kept))


def _columns(text: Sequence[str] | str) -> int:
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
