"""What was found, skipped and why, each finding with a way out (`doctor`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.service.connect.status import Connection
from codex_checkpoints.service.damage import damage
from codex_checkpoints.service.findings import Finding, of_connection
from codex_checkpoints.service.reading.rows import problems_of, skipped_of
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import WINDOW_VARIABLES, left_aside, what_helps
from codex_checkpoints.threads.contract import Fault, Row
from codex_checkpoints.values import frozen


@frozen
class Diagnosis:
    """What was found, skipped and why; `skipped` counts what gave nothing, by reason."""

    codex_home: str
    state_dir: str
    sessions: int
    findings: tuple[Finding, ...]
    skipped: dict[str, int]


def diagnose(
    sessions: Sessions, problems: tuple[str, ...] = (), connection: Connection | None = None
) -> Diagnosis:
    """Look at folders, index and sessions; `problems` are those of the settings.

    `connection` says how Codex is connected; where it is not at all, that is nobody's trouble.
    """
    catalogue = sessions.catalogue
    rows = tuple(catalogue.rows().values())
    skipped = {row.path: skipped_of(row) for row in rows if row.skipped}
    findings = (
        *map(_fault, catalogue.store.faults()),
        *_state_dir(sessions.records.state_dir, sessions.projections.storage_problem),
        *damage(sessions.records),
        *(
            Finding(
                "bad_setting",
                "warning",
                problem,
                os.path.join(sessions.records.state_dir, "config.toml"),
                1,
                what_helps(problem, sessions.settings),
            )
            for problem in problems
        ),
        *map(_variable, sessions.ignored_variables()),
        *(() if connection is None else of_connection(connection, catalogue.current().values())),
        *_scratches(sessions),
        *_rows(rows, catalogue.current()),
        *_skipped(skipped),
    )
    return Diagnosis(
        catalogue.place,
        sessions.records.state_dir,
        len(catalogue.current()),
        findings,
        dict(sorted(_sums(skipped.values()).items())),
    )


_SETTINGS = ("contextWindowTokens", "fastContextWindowTokens")
_INSTEAD = dict(zip(WINDOW_VARIABLES, _SETTINGS, strict=True))


def _variable(name: str) -> Finding:
    """Say that a variable of the environment is left aside (JUN-21)."""
    message = f"{left_aside(name)}."
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
    "unnamable": (
        ("path_not_utf8", "warning"),
        "Session files lie in a folder whose name is not valid UTF-8; they are left out.",
        "Rename the folder; Codex itself names them by year, month and day.",
    ),
    "index_unavailable": (
        ("index_unavailable", "warning"),
        "The index is kept in memory for now: {}.",
        (
            "Delete index.sqlite and its companions, or give your account the right to write it; "
            "it is made anew from the session files."
        ),
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


def _fault(fault: Fault) -> Finding:
    """Say what keeps the store from being whole."""
    (code, severity), message, way_out = _FAULTS[fault.code]
    message = message.format(fault.reason)
    if fault.code == "passed_over" and fault.count > 1:
        message = f"{message.removesuffix('.')}. So are {fault.count - 1} more."
    return Finding(code, severity, message, _writable(fault.path), fault.count, way_out)


def _writable(path: str) -> str:
    """Return a path, or what it looks like where no answer could hold it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return ascii(path)
    return path


def _state_dir(state_dir: str, problem: str | None) -> Iterator[Finding]:
    existing = state_dir
    while not os.path.exists(existing) and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            "state_dir_unwritable",
            "error",
            "Checkpoints cannot be stored here; they are still computed and shown.",
            state_dir,
            1,
            "Give your account the right to write there, or name another folder with --state-dir.",
        )
    elif problem is not None:
        yield Finding(
            "storage_error",
            "error",
            f"Checkpoints could not be stored; they are still computed and shown: {problem}.",
            state_dir,
            1,
            "Make room or mend what is said there; they are stored with the next change.",
        )


def _scratches(sessions: Sessions) -> Iterator[Finding]:
    """Tell of forks that Codex compacted for us, and that nobody put away."""
    catalogue = sessions.catalogue
    live = catalogue.store.live_threads()
    for row in catalogue.current().values():
        if row.scratch and not row.archived and row.session_id not in live:
            yield Finding(
                "scratch_left",
                "info",
                "A scratch fork is left of a compaction by Codex that was cut off.",
                row.path,
                1,
                f"`codex-checkpoints archive {row.session_id}` puts it away; nothing needs it.",
            )


_PROBLEMS = {
    "base_missing": (
        "The earlier part of this session lies in a file that is not there.",
        "Bring the file of rollout {} back; until then the session is shown without it.",
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


def _rows(rows: tuple[Row, ...], current: Mapping[str, Row]) -> Iterator[Finding]:
    reached = _reached(rows, current)
    for row in rows:
        if row.error is not None:
            yield Finding(
                "unreadable_source",
                "error",
                f"This session file cannot be read: {row.error}.",
                row.path,
                1,
                "Check that the file is yours to read and whole; other sessions are unaffected.",
            )
        elif row.path not in reached:
            yield Finding(
                "unreached_segment",
                "info",
                "A file of a session that its newest file does not build on, after a revert.",
                row.path,
                1,
                "Nothing to do; it is read when you name its path.",
            )
        for problem in problems_of(row):
            code, _, rollout_id = problem.partition(":")
            message, way_out = _PROBLEMS[code]
            yield Finding(code, "warning", message, row.path, 1, way_out.format(rollout_id))


def _reached(rows: tuple[Row, ...], current: Mapping[str, Row]) -> set[str]:
    """Return the files that are current, or that a current one builds on."""
    by_rollout = {row.rollout_id: row for row in rows}
    reached: set[str] = set()
    for row in current.values():
        step: Row | None = row
        while step is not None and step.path not in reached:
            reached.add(step.path)
            step = None if step.base_rollout is None else by_rollout.get(step.base_rollout)
    return reached


_SKIPPED = {
    "torn_tail": ("info", "Nothing to do: a session that is being written, or was cut off."),
    "not_json": ("warning", "Codex skips such a line too; the rest of the session is read."),
    "not_object": ("warning", "Codex skips such a line too; the rest of the session is read."),
    "not_utf8": ("warning", "Codex refuses to resume such a file; the rest is read here."),
    "too_long": ("warning", "The line is too long even without its images; the rest is read."),
    "unknown_type": ("info", "Lines of a newer Codex; an update of this tool may know them."),
    "no_ordinal": ("warning", "Written by another tool or version; the line still counts."),
    "repeated_ordinal": ("info", "Several writers numbered alike; the order of the file counts."),
    "unread_call": ("info", "Calls whose arguments are not plain text are counted, not guessed."),
    "path_left_out": ("info", "Names that are too long, or no file at all, are not recorded."),
}


_NAMED = 4
"""So many files are named for each reason, those with the most; the others are counted."""


def _sums(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return found


def _skipped(skipped: Mapping[str, Mapping[str, int]]) -> Iterator[Finding]:
    """Yield what gave nothing: for each reason the files, and in one finding those beyond."""
    for reason in sorted(_sums(skipped.values())):
        severity, way_out = _SKIPPED.get(reason, ("info", "Nothing to do."))
        files = [(path, each[reason]) for path, each in skipped.items() if reason in each]
        ranked = sorted(files, key=lambda file: (-file[1], file[0]))
        for path, count in ranked[:_NAMED]:
            message = f"{count} of what this session file holds gave nothing: {reason}."
            yield Finding(reason, severity, message, path, count, way_out)
        others = ranked[_NAMED:]
        if others:
            count = sum(each for _, each in others)
            message = (
                f"{count} of what {len(others)} more session files hold gave nothing: {reason}."
            )
            yield Finding(reason, severity, message, None, count, way_out)
