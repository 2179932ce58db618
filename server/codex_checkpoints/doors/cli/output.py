"""Prints for a command: answers on stdout as bytes, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterable
from typing import TextIO, cast

import orjson

from codex_checkpoints.doors.pages.log import LogLine, defect
from codex_checkpoints.sections.refusals import sentence_of
from codex_checkpoints.sections.terminal import Screen, plain
from codex_checkpoints.service.refusal import Refusal


def open_streams() -> None:
    """Replace a closed stream (`>&-`) by one that discards; log to stderr."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    log_to_stderr()


def log_to_stderr() -> None:
    """Send the log of this program, and of libraries, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def discard() -> None:
    """Discard the unwritten rest, about which Python would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write(data: bytes) -> None:
    """Write bytes as they are, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_lines(lines: Iterable[str]) -> None:
    """Write lines for a person."""
    for line in lines:
        write(line.encode(errors="replace") + b"\n")


def write_json(value: object, *, indent: bool = True) -> None:
    """Write a JSON document, or one line of it."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:
        # An argument may contain bytes that are not text.
        text = json.dumps(value, ensure_ascii=False, indent=2 if indent else None)
        data = text.encode(errors="replace")
    write(data + b"\n")


def is_answered() -> bool:
    """Return whether a person reads the output, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agreed(question: str) -> bool:
    """Ask on stdout, below the lines in question; return whether the answer is yes."""
    write(f"{question} [y/N] ".encode())  # Python itself would ask on stderr
    try:
        return input().strip().lower() in {"y", "yes"}
    except EOFError:  # Ctrl+D
        write_lines([""])
        return False


def say(sentence: str) -> None:
    """Print a line to stderr."""
    print(plain(sentence), file=sys.stderr)


def refused(refusal: Refusal, screen: Screen, *, as_json: bool) -> None:
    """Report a refusal: as JSON on stdout, else in one line on stderr, its code at the end."""
    if as_json:
        facts = dict(refusal.facts)
        if "resume" in facts:  # as the text has it, with the home
            facts["resume"] = screen.codex(str(facts["resume"]))
        error = {"code": refusal.code, "message": sentence_of(refusal), "facts": facts}
        write_json({"error": error}, indent=False)
    else:
        hints = [refusal.facts.get("hint") or _remedy(refusal)]
        if refusal.facts.get("canForce"):
            hints.append("--force does it anyway.")
        hint = screen.within(" ".join(str(each) for each in hints if each))
        text = " ".join(filter(None, (sentence_of(refusal), hint)))
        say(f"{text} [{refusal.code}]")


def failed(error: Exception, *, as_json: bool) -> None:
    """Report an internal error: as JSON on stdout, else in one line on stderr."""
    what = defect(error)
    if as_json:
        write_json({"error": {"code": "internal", "message": what, "facts": {}}}, indent=False)
    else:
        say(f"error: internal: {what}")


_NAMED = 4
"""Number of sessions that are named; more are hard to read in one line."""

_REMEDIES = {
    "unknown_session": (
        "`sessions` lists them; give an id, at least its first 8 characters, or a whole name."
    ),
    "codex_not_found": "Install the Codex CLI, or put its folder on the PATH.",
    "unknown_turn": "`outline` lists the turns of a session.",
    "unknown_checkpoint": "`marks` lists the markers of a session.",
    "unknown_compaction": "Give its id, which `windows` lists, or the id of the session it made.",
    "unknown_operation": "`restores` lists them.",
    "unknown_ref": "`recall --query TEXT` finds records by their words.",
    "turn_not_complete": "Wait until it has ended, or name an earlier one.",
}
_REMEDIES_BY_REASON = {
    "nothing_new": "`codex-checkpoints resume {into}` continues there.",
    "compacted": "`codex-checkpoints resume {into}` continues there.",
    "exists": "Try again.",
    "gone": "`unmark` removes such a marker.",
    "gone_on": "Try again.",
    "imported": (
        "`codex-checkpoints resume {sessionId}` continues it; to import it into another folder, "
        "first `codex-checkpoints delete {sessionId}`."
    ),
    "later_compaction": "`windows` lists the compactions; undo the latest one first.",
    "later_window": "To go back to an earlier turn, `mark` it and `restore` it.",
    "no_id": "`codex-checkpoints doctor` reports unreadable files.",
    "other_bytes": "To go back to an earlier turn, `mark` it and `restore` it.",
}
"""By the reason in the facts, which fill the names in braces."""


def _remedy(refusal: Refusal) -> str | None:
    """Return the command that helps; the service itself names no command."""
    if refusal.code == "ambiguous_session":
        candidates = cast("list[str]", refusal.facts["candidates"])
        more = ["…"] if len(candidates) > _NAMED else []
        return f"Give more of one: {', '.join([*candidates[:_NAMED], *more])}"
    if refusal.facts.get("reason") == "same_label":
        candidates = cast("list[str]", refusal.facts["candidates"])
        return f"Give the id of one: {', '.join(candidates)}"
    if refusal.code == "unknown_compaction" and refusal.facts["candidates"]:
        candidates = cast("list[str]", refusal.facts["candidates"])
        return f"`codex-checkpoints uncompact {candidates[-1]}` undoes the latest of this session."
    if refusal.code == "storage_error" and "path" in refusal.facts:
        return f"It is {refusal.facts['path']}; --state-dir names another state folder."
    if "codexHome" in refusal.facts:
        return None  # the sentence itself names the remedy: the home is missing
    found = _REMEDIES_BY_REASON.get(str(refusal.facts.get("reason")))
    return _REMEDIES.get(refusal.code) if found is None else found.format_map(refusal.facts)


def colour() -> bool:
    """Return whether colours are shown."""
    plainly = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plainly


def width(stream: TextIO | None = None) -> int | None:
    """Return the columns of a stream's terminal (default stdout), or None without a terminal.

    COLUMNS, if it is set, takes precedence over the terminal's report.
    """
    with contextlib.suppress(OSError, ValueError):
        reported = os.get_terminal_size((stream or sys.stdout).fileno()).columns
        chosen = os.environ.get("COLUMNS", "")
        return (int(chosen) if chosen.isdecimal() else 0) or reported or None
    return None
