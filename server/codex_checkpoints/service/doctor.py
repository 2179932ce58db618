"""Reports findings and skipped lines, with reasons; each finding has a remedy (`doctor`)."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.service.connect.status import HOW_TO_TRUST, Connection
from codex_checkpoints.service.reading.session_row import problems_of, skipped_of
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.settings import WINDOW_VARIABLES, ignored_variable, what_helps
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import Row, StoreFault, moment
from codex_checkpoints.storage.journal_lines import unreadable_in
from codex_checkpoints.storage.records import (
    AUDIT,
    COMPACTIONS,
    FILE_COPIES,
    FILE_RESTORES,
    IMPORTS,
    MARKERS,
    PULLS,
    RESTORES,
    UPDATES,
    Records,
)
from codex_checkpoints.storage.safety_copies import Copy, FileCopies, SafetyCopies


@frozen
class Finding:
    """A finding with its remedy; `severity` is `error`, `warning` or `info`."""

    code: str
    severity: str
    message: str
    path: str | None
    count: int
    way_out: str


_DOORS = {"hook": "Hooks", "mcp": "Memory tools"}
_CONNECTION_PROBLEMS: Mapping[str, tuple[str, str]] = {
    "program_missing": (
        "error",
        "The program that Codex should call is gone: it or its Python was moved or removed.",
    ),
    "outdated": ("warning", "Codex calls this program not as `connect` would have it."),
    "disabled": ("warning", "Codex has them switched off."),
    "failed": ("warning", "The last call failed."),
}


def of_connection(connection: Connection) -> Iterator[Finding]:
    """Yield the problems of the connection and its files, nothing without a connection."""
    home = connection.codex_home
    failures = {str(door.failure) for door in connection.doors}
    for problem in connection.problems:
        if problem not in failures:
            message, way_out = (
                f"{problem}.",
                "Correct that file: nothing is changed in it until then.",
            )
            yield Finding("codex_configuration", "warning", message, home, 1, way_out)
    for door in connection.doors:
        name = _DOORS[door.door]
        known = _CONNECTION_PROBLEMS.get(door.problem or "")
        if known is not None:
            severity, message = known
            if door.problem == "failed" and door.failure is not None:
                message = f"The last call, at {door.failure.at}, failed: {door.failure.code}."
            code, way_out = f"{door.door}_{door.problem}", door.way_out or ""
            yield Finding(code, severity, f"{name}: {message}", home, 1, way_out)
        elif door.door == "hook" and door.problem is None and door.last_ran_at is None:
            message = f"{name}: they are connected, and Codex has not called them yet."
            yield Finding("hook_never_ran", "info", message, home, 1, HOW_TO_TRUST)


_METADATA = "metadata.jsonl"
"""Written by the thread store."""
_OF_A_SESSION = (
    *(UPDATES, _METADATA, MARKERS, COMPACTIONS, RESTORES, IMPORTS, PULLS),
    *(FILE_RESTORES, FILE_COPIES),
)
_SHOWN = 8
"""Number of line numbers that are listed; the others are counted."""


def damage(records: Records) -> Iterator[Finding]:
    """Yield a finding for each of our record files with unreadable lines."""
    for path in _paths(records):
        try:
            numbers = tuple(unreadable_in(path))
        except StorageError as error:
            message = f"This record of ours cannot be read: {error}."
            way_out = "Give your account the right to read it, or bring it back from a backup."
            yield Finding("unreadable_record", "error", message, path, 1, way_out)
            continue
        if numbers:
            message = f"{_lines(numbers)} of this record of ours cannot be read; the others count."
            way_out = (
                "Bring the file back from a backup, else what stood there is lost;"
                " only the unfinished work of a killed program is not a loss."
            )
            yield Finding("damaged_record", "warning", message, path, len(numbers), way_out)


def _damaged(records: Records, rows: Iterable[Row]) -> Iterator[Finding]:
    """Report unreadable stored checkpoints; the next read of a session repairs its own (TRU-4)."""
    found = [*records.damaged_checkpoints({row.session_id: row.path for row in rows})]
    if found:
        message = "A stored checkpoint is damaged."
        way_out = "Nothing is lost: `codex-checkpoints watch --once` makes all of them again."
        yield Finding("damaged_checkpoint", "warning", message, found[0], len(found), way_out)


def _paths(records: Records) -> Iterator[str]:
    yield os.path.join(records.state_dir, AUDIT)
    for name in _OF_A_SESSION:
        for session_id in sorted(records.holding(name)):
            folder = records.session_dir(session_id)
            if folder is not None:
                yield os.path.join(folder, name)


def _lines(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]}"
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    others = len(numbers) - _SHOWN
    return f"Lines {shown} and {others} more" if others > 0 else f"Lines {shown}"


@frozen
class Diagnosis:
    """The findings, and the ignored lines with reasons; `skipped` counts lines without a result."""

    codex_home: str
    state_dir: str
    sessions: int
    findings: tuple[Finding, ...]
    skipped: dict[str, int]


def diagnose(
    sessions: Sessions, problems: tuple[str, ...] = (), connection: Connection | None = None
) -> Diagnosis:
    """Check folders and index, and read all sessions; `problems` come from the settings."""
    catalogue = sessions.catalogue
    sessions.read_all()  # reading only the ends would miss ignored lines
    rows = tuple(catalogue.rows().values())
    skipped = {row.path: skipped_of(row) for row in rows if row.skipped}
    config, settings = os.path.join(sessions.records.state_dir, "config.toml"), sessions.settings
    findings = (
        *map(_fault, catalogue.store.faults()),
        *_state_dir(sessions.records.state_dir, sessions.projections.storage_problem),
        *damage(sessions.records),
        *_damaged(sessions.records, catalogue.current().values()),
        *(
            Finding("bad_setting", "warning", problem, config, 1, what_helps(problem, settings))
            for problem in problems
        ),
        *map(_variable, sessions.ignored_variables()),
        *(() if connection is None else of_connection(connection)),
        *_rows(sessions),
        *_over_window(catalogue.current().values()),
        *_ahead(catalogue.current().values()),
        *_without_content(catalogue.current().values()),
        *_skipped(skipped),
        *_copies(sessions.records.state_dir),
    )
    return Diagnosis(
        catalogue.store.place,
        sessions.records.state_dir,
        sum(not row.is_blank for row in catalogue.current().values()),
        findings,
        dict(sorted(_sums(skipped.values()).items())),
    )


def _copies(state_dir: str) -> Iterator[Finding]:
    """Report the copies of files, which take space."""
    restored, replaced = SafetyCopies(state_dir), FileCopies(state_dir)
    way_out = (
        "Nothing to do: older than 30 days, they go when others are made."
        " `codex-checkpoints doctor --delete-copies` deletes them now; {}."
    )
    if copies := restored.copies():
        whose = counted(len(copies), "restore")
        message = f"The files that {whose} replaced are kept: {_extent(copies)}."
        lost = way_out.format("then no restore can be undone")
        yield Finding("safety_copies", "info", message, restored.folder, len(copies), lost)
    if copies := replaced.copies():
        texts = counted(len(copies), "text")
        message = f"A hook copied {texts} of files that Codex replaced: {_extent(copies)}."
        lost = way_out.format("then these files do not come back")
        yield Finding("file_copies", "info", message, replaced.folder, len(copies), lost)


def _extent(copies: Sequence[Copy]) -> str:
    """Return the size of some copies and the day of the oldest, which is the last of them."""
    size = math.ceil(sum(each.size for each in copies) / 1000)
    return f"{size:,} kB, the oldest of {moment(copies[-1].mtime_ns)[:10]}"


def delete_copies(records: Records) -> None:
    """Delete the copies of files, except a running restore's."""
    restored, replaced = SafetyCopies(records.state_dir), FileCopies(records.state_dir)
    under_way = records.operations_begun()
    for each in restored.copies():
        if each.name not in under_way:
            restored.remove(each.name)
    for each in replaced.copies():
        replaced.remove(each.name)


_SETTINGS = ("contextWindowTokens", "fastContextWindowTokens")
_INSTEAD = dict(zip(WINDOW_VARIABLES, _SETTINGS, strict=True))


def _over_window(rows: Iterable[Row]) -> Iterator[Finding]:
    """Report sessions with more reported tokens than their window has (ROL-9)."""
    over = [
        row.path
        for row in rows
        if row.context_source == "reported"
        and (row.context_tokens or 0) > (row.context_window or math.inf)
    ]
    if over:
        message = "More tokens are reported than the window holds; that figure is not used."
        way_out = "If the model's window is larger than Codex says, set contextWindowTokens."
        yield Finding("over_window", "warning", message, max(over), len(over), way_out)


def _variable(name: str) -> Finding:
    message = f"{ignored_variable(name)}."
    way_out = f"Correct the variable, or set {_INSTEAD[name]} in config.toml instead."
    return Finding("bad_variable", "warning", message, None, 1, way_out)


_FAULTS = {
    "home_missing": (
        ("codex_home_missing", "error"),
        "There is no Codex home here.",
        "Run Codex once, or name the folder with CODEX_HOME or --codex-home.",
    ),
    "rollouts_missing": (
        ("sessions_folder_missing", "warning"),
        "Codex has written no session here yet.",
        "Start a session with Codex; it appears by itself.",
    ),
    "rollouts_unreadable": (
        ("sessions_folder_unreadable", "error"),
        "The folder of the sessions cannot be read.",
        "Give your account the right to read it.",
    ),
    "index_unavailable": (
        ("index_unavailable", "warning"),
        "The index is kept in memory for now: {}.",
        (
            "Delete index.sqlite and its companions, or give your account the right to write it; "
            "it is rebuilt from the session files."
        ),
    ),
    "index_remade": (
        ("index_remade", "info"),
        "The index was damaged and was rebuilt from the session files, at {}.",
        "Nothing is lost. If it comes again, check the disk.",
    ),
    "passed_over": (
        ("passed_over", "warning"),
        "This may be a session file or hold some, and is left out: it is {}.",
        (
            "Move it elsewhere, or put the session file itself there under the name that Codex gave"
            " it; `codex-checkpoints view` reads a file of any name by its path."
        ),
    ),
}


def _fault(fault: StoreFault) -> Finding:
    (code, severity), message, way_out = _FAULTS[fault.code]
    message = message.format(fault.reason)
    if fault.code == "passed_over" and fault.count > 1:
        message = f"{message.removesuffix('.')}. So are {fault.count - 1} more."
    path = fault.path.encode(errors="backslashreplace").decode()  # a file name need not be UTF-8
    return Finding(code, severity, message, path, fault.count, way_out)


def _state_dir(state_dir: str, problem: str | None) -> Iterator[Finding]:
    existing = state_dir
    while not os.path.exists(existing) and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK | os.X_OK):
        message = "Checkpoints cannot be stored here; they are still computed and shown."
        way_out = (
            "Give your account the right to write there, or name another folder with --state-dir."
        )
        yield Finding("state_dir_unwritable", "error", message, state_dir, 1, way_out)
    elif problem is not None:
        message = f"Checkpoints could not be stored; they are still computed and shown: {problem}."
        way_out = "Make room or mend what is said there; they are stored with the next change."
        yield Finding("storage_error", "error", message, state_dir, 1, way_out)


_PROBLEMS = {
    "base_missing": (
        "The earlier part of this session lies in a file that is not there.",
        "Bring back the file of rollout {}; until then the session is shown without it.",
    ),
    "base_short": (
        "The file with the earlier part of this session is shorter than it was.",
        "Restore rollout {} from a backup; what can be read is shown.",
    ),
    "base_cycle": (
        "The files of this session refer to each other in a circle.",
        "Rollout {} was edited; restore it from a backup.",
    ),
}


def _rows(sessions: Sessions) -> Iterator[Finding]:
    rows, current = sessions.catalogue.rows().values(), sessions.catalogue.current()
    reached = {
        each.path
        for row in current.values()
        for each in (row, *sessions.catalogue.chains.below(row))
    }
    for row in tuple(rows):
        if row.error is not None:
            message = f"This session file cannot be read: {row.error}."
            way_out = (
                "Check that the file is yours to read and whole; other sessions are unaffected."
            )
            yield Finding("unreadable_source", "error", message, row.path, 1, way_out)
        elif row.path not in reached and _is_twin(row, current):
            message = "The same session file lies in two places; the other one counts."
            way_out = "Remove one of the two; this one is read when you name its path."
            yield Finding("twin", "warning", message, row.path, 1, way_out)
        elif row.path not in reached:
            message = (
                "After a revert, the newest file of this session no longer builds on this one."
            )
            way_out = "Nothing to do; it is read when you name its path."
            yield Finding("unreached_segment", "info", message, row.path, 1, way_out)
        for problem in problems_of(row):
            code, _, rollout_id = problem.partition(":")
            message, way_out = _PROBLEMS[code]
            yield Finding(code, "warning", message, row.path, 1, way_out.format(rollout_id))


def _is_twin(row: Row, current: Mapping[str, Row]) -> bool:
    """Return whether another file has the same rollout, as an archived copy does."""
    newest = current.get(row.session_id)
    return newest is not None and newest.rollout_id == row.rollout_id


def _others(paths: Sequence[str]) -> str:
    """Return the sentence that counts the files with the same finding, besides the named one."""
    others = len(paths) - 1
    return f" The same is true of {counted(others, 'other file')}." if others else ""


_DAY_NS = 86_400_000_000_000


def _ahead(rows: Iterable[Row]) -> Iterator[Finding]:
    """Report sessions whose last record is a day or more later than the file itself."""
    late = [
        row.path
        for row in rows
        if row.error is None and row.at > moment(row.rollout.modified_ns + _DAY_NS)
    ]
    if late:
        message = f"The last record of this file is later than the file itself.{_others(late)}"
        way_out = (
            "Set the clock right, or have the tool that wrote the file record true times. Until"
            " then the session is first in lists, in Codex as well, unless you archive it."
        )
        yield Finding("future_time", "warning", message, max(late), len(late), way_out)


def _without_content(rows: Iterable[Row]) -> Iterator[Finding]:
    """Report files without a head and a request, which lists omit."""
    empty = [row.path for row in rows if row.is_blank]
    if empty:
        message = f"This file has neither a head nor a request; lists leave it out.{_others(empty)}"
        way_out = "Remove it, or bring it back from a backup; one that Codex begins now is listed."
        yield Finding("blank", "info", message, min(empty), len(empty), way_out)


_SKIPPED = {
    "torn_tail": (
        "Unfinished last line",
        "info",
        "Nothing to do: the session is being written, or was cut off.",
    ),
    "not_json": (
        "Lines that are not JSON",
        "warning",
        "Codex skips such a line too; the rest of the session is read.",
    ),
    "not_object": (
        "Lines that are not a JSON object",
        "warning",
        "Codex skips such a line too; the rest of the session is read.",
    ),
    "not_utf8": (
        "Lines that are not UTF-8",
        "warning",
        "Codex refuses to resume such a file; the rest is read here.",
    ),
    "too_long": (
        "Lines that are too long",
        "warning",
        "The line is too long even without its images; the rest is read.",
    ),
    "unknown_type": (
        "Lines of an unknown type",
        "info",
        "They come from a newer Codex; an update of this tool may read them.",
    ),
    "no_time": (
        "Lines whose time is missing or no text",
        "warning",
        (
            "Codex refuses such a line, and the session where it is the first one: have the tool"
            " that wrote it write times such as 2026-11-20T09:00:01.000Z. Here the lines count."
        ),
    ),
    "zero_bytes": (
        "Lines with zero bytes",
        "warning",
        (
            "The machine or the disk failed while it was written, and what stood there is lost;"
            " bring the file back from a backup, or go on: the rest is read."
        ),
    ),
    "no_ordinal": (
        "Lines without a number",
        "warning",
        "Written by another tool or version; the line still counts.",
    ),
    "repeated_ordinal": (
        "Lines with a number twice",
        "info",
        "Several writers used the same number; the order in the file counts.",
    ),
    "unread_call": (
        "Tool calls that cannot be read",
        "info",
        "Calls whose arguments are not plain text are counted, not guessed.",
    ),
    "path_left_out": (
        "Paths left out",
        "info",
        "Names that are too long, or name no file, are not recorded.",
    ),
}


def _sums(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    return sum(map(Counter, counts), Counter[str]())


def _skipped(skipped: Mapping[str, Mapping[str, int]]) -> Iterator[Finding]:
    """Yield the ignored lines: for each reason their number, and the file with the most."""
    for reason, count in sorted(_sums(skipped.values()).items()):
        words = reason.replace("_", " ").capitalize()
        words, severity, way_out = _SKIPPED.get(reason, (words, "info", "Nothing to do."))
        files = {path: each[reason] for path, each in skipped.items() if reason in each}
        most = min(files, key=lambda path: (-files[path], path))
        message = f"{words}: {count}, in {len(files)} session file{'s' * (len(files) != 1)}."
        yield Finding(reason, severity, message, most, count, way_out)
