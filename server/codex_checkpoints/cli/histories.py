"""The commands about one session: what happened in it, and what is made of it.

`compact`, `uncompact` and `resume` change it.  On a terminal `resume` starts Codex in the place of
this program; elsewhere, and with `--print` or `--json`, it prints how to go on and changes nothing.
"""

from __future__ import annotations

import argparse
import os
from functools import partial

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    ANY_SESSION,
    DIGEST_TOKENS,
    DONE,
    JSON,
    MARKER,
    OF_OURS,
    SESSION,
    Commands,
    Later,
    answer,
    ask,
    asks,
    count,
    flag,
    one_of,
    positive,
    refresh_for_session,
    report,
    screen,
    value,
    whole,
)

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from codex_checkpoints.assembly import Places
    from codex_checkpoints.cli.opening import Terminal
    from codex_checkpoints.presentation import histories as texts
    from codex_checkpoints.presentation import restores
    from codex_checkpoints.service.compaction.resuming import Resumed
else:
    texts, restores = Later("presentation.histories"), Later("presentation.restores")


def add(commands: Commands) -> None:
    """Add the commands that read a history."""
    add = partial(commands.add, before=refresh_for_session)
    about = "print what Codex would send when the session is resumed"
    add("history", about, _history, ANY_SESSION, JSON)
    fragment = flag("--fragment", "print the ids as a model gets them")
    about = "list the context windows of a session"
    add("windows", about, _windows, fragment, ANY_SESSION, JSON, check=_one_form)
    about = "print an outline of a session, however long the session is"
    add("outline", about, _outline, ANY_SESSION, JSON)
    about = "show how a session went, turn by turn: context, calls, files, failed checks"
    add("timeline", about, _timeline, ANY_SESSION, JSON)
    path = value("uri", "PATH", "show the patches of this file", nargs="?")
    only = value("--turn", "TURN", f"only this turn: {A_TURN}", dest="turn_id")
    behind = value("--after", "TURN", "only the turns after this one", dest="after_turn_id")
    about = "list the files that a session changed, and which have changed since"
    add("changes", about, _changes, ANY_SESSION, path, only, behind, JSON)
    add("losses", "list what each compaction of a session lost", _losses, ANY_SESSION, JSON)


def add_diff(commands: Commands) -> None:
    """Add `diff`."""
    turns = (
        value("--from", "TURN", f"the first: {A_TURN}", dest="from_turn_id", required=True),
        value("--to", "TURN", f"the second: {A_TURN}", dest="to_turn_id", required=True),
    )
    about = "list what changed between the ends of two turns"
    commands.add("diff", about, _diff, SESSION, JSON, *turns)


def add_compactions(commands: Commands) -> None:
    """Add `compact`, `uncompact` and `resume`."""
    into = "where the work continues: in a new session, or in the same one"
    who = "who compacts: this program, or Codex itself, which asks its model over the network"
    commands.add(
        "compact",
        "continue from a checkpoint instead of the whole history",
        _compact,
        SESSION,
        value("--into", None, into, choices=("new", "in-place"), default="new"),
        value("--strategy", None, who, choices=("checkpoint", "codex"), default="checkpoint"),
        value("--timeout", "SECONDS", "how long Codex may take for its summary", type=positive),
        value("--placement", "MODE", "manual, or pre_turn; only recorded", default="manual"),
        DIGEST_TOKENS,
        flag("--dry-run", "only show what it would do"),
        flag("--force", "compact even if nothing is saved, or the last turn was cut off"),
        JSON,
        check=_wrong_compact,
        before=None,
    )
    about = "its id, that of the session it made, or the beginning of one"
    compaction = value("compaction_id", "COMPACTION", about)
    commands.add("uncompact", "undo a compaction", _uncompact, compaction, JSON)
    only_print = flag("--print", "only print the command; change nothing")
    json = flag("--json", "only print how to continue, as JSON; change nothing")
    about = "continue a session in Codex; compact it first if the settings ask for it"
    commands.add_alone("resume", about, _resume, SESSION, only_print, json)


_PATH = "a file in the session's folder, or lines of it: src/a.py#L3-L9"
_TO_PIN = (
    value("path", "PATH", _PATH, nargs="?"),
    value("--message", "REF", "a message: #120, its id, or t3 for the request of turn 3"),
    value("--note", "ID", "a note: the key of a fact, or the id of a decision"),
    value("--text", "TEXT", "a text of your own, one line"),
)


def add_marking(commands: Commands) -> None:
    """Add the commands about markers and pins."""
    add = commands.add
    label = value("--label", "LABEL", "what to call it", required=True)
    turn = value("--turn", "TURN", f"{A_TURN}; by default the last one that ended", dest="turn_id")
    add("mark", "put a marker on a turn, to come back to", _mark, SESSION, JSON, label, turn)
    add("marks", "list the markers of a session", _marks, SESSION, JSON)
    add("unmark", "remove a marker", _unmark, SESSION, JSON, MARKER)
    label = value("label", "LABEL", "what to call it from now on")
    add("relabel", "give a marker another label", _relabel, SESSION, JSON, MARKER, label)
    about = "pin something for digests and state packs, or list what is pinned"
    add("pin", about, _pin, SESSION, JSON, one_of(*_TO_PIN))
    add("unpin", "remove a pin", _unpin, SESSION, JSON, one_of(*_TO_PIN, required=True))


def add_restoring(commands: Commands) -> None:
    """Add the commands about restores."""
    add = commands.add
    about = "soft continues with context, hard resets the context for performance"
    mode = value("--mode", None, about, choices=("soft", "hard"), required=True)
    about = "how large the state pack of a hard restore may be"
    budget = value("--budget", "TOKENS", about, type=count)
    about = "include your last N messages in a hard restore, 0 to 5 (default 3)"
    window = value("--window", "N", about, type=whole, default=3)
    about = "add a digest of so many tokens to a hard restore"
    digest = value("--digest-tokens", "N", about, type=whole, default=0)
    reason = value("--reason", "TEXT", "why, for the state pack and the record")
    dry_run = flag("--dry-run", "only show what it would do")
    about = "open a branch at a marker; the session itself does not change"
    choices = (mode, budget, window, digest, reason, dry_run)
    add("restore", about, _restore, SESSION, MARKER, JSON, *choices)
    session = value("session_id", "SESSION", OF_OURS, nargs="?")
    add("restores", "list the restores of a session, or all", _restores, session, JSON)
    operation = value("operation_id", "OPERATION", "its id; `restores` lists them")
    add("restore-details", "print everything about a restore", _details, operation, JSON)
    about = "show the tree of sessions to which a session belongs"
    add("lineage", about, _lineage, SESSION, JSON)
    about = "of this session, as source or branch"
    session = value("--session", "SESSION", about, dest="session_id")
    about = "of this operation, by its whole id"
    operation = value("--operation", "OPERATION", about, dest="operation_id")
    add("audit", "list the events of the audit log", _audit, session, operation, JSON)


def add_portable(commands: Commands) -> None:
    """Add `export` and `import`."""
    file = value("file", "FILE", "the file to write", type=os.path.abspath)
    force = flag("--force", "replace a file that is there")
    dry_run = flag("--dry-run", "only show what it would hold")
    about = "write what a session knows to a portable file"
    commands.add("export", about, _export, ANY_SESSION, file, force, dry_run, JSON)
    file = value("file", "FILE", "the file to read", type=os.path.abspath)
    cwd = value("--cwd", "DIR", "the folder of the session", default=".")
    dry_run = flag("--dry-run", "only show what it would do")
    about = "make a session from a portable file, for a folder of this machine"
    commands.add("import", about, _import, file, cwd, dry_run, JSON)


_history = asks("histories.history", texts.history_lines)
_outline = asks("histories.outline", texts.outline_lines)
_diff = asks("histories.diff", restores.diff_lines)
_uncompact = asks("compactions.uncompact", texts.uncompacted_lines)


def _one_form(options: argparse.Namespace) -> str | None:
    return "--fragment is no JSON" if options.fragment and options.json else None


def _windows(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.core.history.windows import render
    from codex_checkpoints.presentation.terminal import plain
    from codex_checkpoints.service.history import Histories

    histories = Histories(services.sessions)
    if options.fragment:
        fragment = render(histories.fragment(options.session_id))
        output.write_lines(plain(line) for line in fragment.split("\n"))
        return DONE
    row = services.sessions.find(options.session_id)
    lines = partial(
        texts.window_lines,
        undone=histories.undone(options.session_id),
        elsewhere=services.sessions.compactions.into_new(row.session_id),
    )
    return answer(options, services, "histories.windows", lines)


def _losses(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.service.history import Histories

    undone = Histories(services.sessions).undone(options.session_id).values()
    lines = partial(texts.loss_lines, undone=undone)
    return answer(options, services, "histories.losses", lines)


def _changes(options: argparse.Namespace, services: Terminal) -> int:
    options.texts = options.uri is not None
    lines = partial(texts.change_lines, uri=options.uri)
    return answer(options, services, "histories.changes", lines)


def _timeline(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.core.checkpoint.text import redact
    from codex_checkpoints.presentation.timelines import timeline_lines

    record = ask(options, services, "histories.timeline")
    sessions = services.sessions
    detail = sessions.detail(options.session_id)
    window = detail.summary.context_window
    if options.json:
        return report(options, record, ())
    marks = ask(options, services, "marking.marks").items
    branches = ask(options, services, "restores.around").items
    named = {turn.turn_id: turn.task for turn in detail.turns}
    named |= {each.checkpoint_id: each.label for each in marks}
    named |= {each.session_id: each.title or each.session_id for each in branches}
    names = {each: redact(words or "") for each, words in named.items()}
    return report(options, record, timeline_lines(record, screen(options), window, names))


def _wrong_compact(options: argparse.Namespace) -> str | None:
    waits = options.strategy == "codex" or options.timeout is None
    return None if waits else "--timeout goes with --strategy codex"


def _compact(options: argparse.Namespace, services: Terminal) -> int:
    operation = "compactions.compact_preview" if options.dry_run else "compactions.compact"
    return answer(options, services, operation, texts.compaction_lines, options.timeout)


def _resume(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints.cli.opening import opened

    only_prints = options.print or options.json
    program = None if only_prints or not output.is_answered() else _codex()
    with opened(where) as services:
        services.look_around()
        operation = "compactions.resume_preview" if only_prints else "compactions.resume"
        record: Resumed = ask(options, services, operation)
    if not options.json:
        notices = texts.resume_notices(record, screen(options))
        for notice in (*(texts.gone_folder(record) if program is None else ()), *notices):
            output.say(notice)
    if program is None:
        return report(options, record, [texts.resume_line(record, screen(options))])
    return _run(program, record, where)


def _codex() -> str:
    from codex_checkpoints.codex import program
    from codex_checkpoints.service.refusal import Refusal

    found = program.find(os.environ.get("PATH", ""))
    if found is None:
        message = "the Codex CLI is not on the PATH"
        hint = "With --print the command is printed, to be run where Codex is."
        raise Refusal("codex_not_found", message, {"hint": hint})
    return found


def _run(program: str, record: Resumed, where: Places) -> int:
    """Replace this process by Codex, in the folder of the session, or here if that is gone."""
    import subprocess

    from codex_checkpoints.service.refusal import Refusal

    if record.cwd is not None:
        try:
            os.chdir(record.cwd)
        except OSError as error:
            output.say(f"{record.cwd}: {error.strerror}; Codex starts in this folder")
    words = [program, "resume", record.session_id]
    environment = {**os.environ, "CODEX_HOME": where.codex_home}
    try:
        if os.name == "nt":  # there a program in our place would lose the terminal
            code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 - Codex
        else:
            os.execve(program, words, environment)  # noqa: S606 - Codex
    except OSError as error:
        message = f"{program} does not start: {error.strerror}"
        raise Refusal("codex_not_found", message) from error
    return code


_mark = asks("marking.mark", restores.marker_lines)
_relabel = asks("marking.relabel", restores.marker_lines)
_marks = asks("marking.marks", restores.markers_lines)
_unpin = asks("marking.unpin", restores.pin_lines)
_restores = asks("restores.restores", restores.restore_lines)
_details = asks("restores.restore_details", restores.detail_lines)
_lineage = asks("restores.lineage", restores.lineage_lines)
_audit = asks("restores.audit", restores.event_lines)
_export = asks("portable.export", restores.exported_lines)
_import = asks("portable.make", restores.imported_lines)


def _unmark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import Unmarked, UnmarkParams, taken_away
    from codex_checkpoints.presentation.terminal import plain

    gone = taken_away(services, UnmarkParams(options.session_id, options.checkpoint_id))
    record = Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return report(options, record, [plain(f"removed: {gone.label}")])


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    named = (options.path, options.message, options.note, options.text)
    operation = "marking.pins" if named == (None,) * 4 else "marking.pin"
    return answer(options, services, operation, restores.pin_lines)


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    operation = "restores.restore_preview" if options.dry_run else "restores.restore"
    return answer(options, services, operation, restores.restored_lines)
