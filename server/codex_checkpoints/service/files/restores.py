"""Restores files of a session to their bytes at the end of a turn, one by one (FIL).

A plan comes first and writes nothing.  Only rows that the plan offers and the caller chose are
written; each is checked again right before, and one that changed meanwhile stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from codex_checkpoints.codex.program import find
from codex_checkpoints.core.changes.edits import Edits, UnnamedChange
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.files.plan import (
    OFFERED,
    FileState,
    OnDisk,
    PlannedFile,
    Proof,
    planned,
)
from codex_checkpoints.core.files.records import (
    FileRestore,
    FileWrite,
    file_restores_in,
)
from codex_checkpoints.core.files.words import (
    LABELS,
    commands_remark,
    done_headline,
    plan_headline,
    undone_headline,
)
from codex_checkpoints.service.files.copies import copies_of
from codex_checkpoints.service.files.writes import FileChange, FileRestoring, hash_of, root_of
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.reading.session_file import end_of, find_turn
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import git_objects, project_files
from codex_checkpoints.storage.project_files import Problem, ProjectFile
from codex_checkpoints.storage.records import FILE_RESTORES
from codex_checkpoints.storage.safety_copies import SafetyCopies

MOST_TEXT = 1 << 20
"""The most code points of a text in a preview; a longer text is omitted."""

MOST_COMMANDS = 20
"""The most commands that are shown, the newest."""


@frozen
class FilesParams:
    """A session, and a turn by id or number, or a marker on one.

    `files` are the files to restore; null restores all that are on.  `merge` are files to restore
    although somebody changed other lines of them.  With `texts` a preview has texts, of the named
    files if any are named.
    """

    session_id: str
    turn_id: str | None = None
    checkpoint_id: str | None = None
    files: tuple[str, ...] | None = None
    merge: tuple[str, ...] = ()
    texts: bool = False

    @property
    def named(self) -> frozenset[str]:
        """Return the files that the caller names."""
        return frozenset((*(self.files or ()), *self.merge))


@frozen
class UndoFilesParams:
    """A restore of files, by its operation; it may be an undo itself."""

    operation_id: str


@frozen
class RestoredFile:
    """A file that the session changed after the turn.

    `state` is the effect of restoring it, or the reason why it is left alone, and `label` the same
    in words; `proof` is how its earlier bytes are known: `diff`, `hash`, `copy` (made by a hook
    before Codex wrote it) or `context`.  `added` and `removed` count lines.  `hashNow` is null if
    there is no file, `hashThen` too, and if it is unknown.  `movedTo` is the place from which it
    returns.  `offered`: the caller may choose it.  `on`: it is restored by default.  `written`: it
    was written.  `before` and `after` are its texts now and then, only with `texts`, and null if
    they hold a secret; `after` of a `new_or_replaced` file is its text in git in the commit at
    which the session began.
    """

    path: str
    state: FileState
    label: str
    why: str | None
    proof: Proof | None
    added: int
    removed: int
    hash_now: str | None
    hash_then: str | None
    moved_to: str | None
    offered: bool
    on: bool
    written: bool
    before: str | None = None
    after: str | None = None


@frozen
class RestoredFiles:
    """The rows of a plan, or of its result; `operationId` is null if nothing was written.

    `headline` says it in sentences.  `folder` is the session's folder, to which the paths are
    relative.  `unnamed` counts the commands after the turn that may have changed files without
    naming them, `remark` says so, and `commands` are the newest of them.
    """

    operation_id: str | None
    session_id: str
    turn_id: str
    folder: str
    headline: str
    rows: tuple[RestoredFile, ...]
    unnamed: int
    remark: str | None
    commands: tuple[str, ...]


@frozen
class _Plan:
    """The plan for a session, with each file as it was checked."""

    session_id: str
    turn_id: str
    folder: str
    files: tuple[PlannedFile, ...]
    seen: Mapping[str, ProjectFile]
    unnamed: tuple[UnnamedChange, ...]
    commit: str | None
    """The commit of the folder at which the session began."""


def preview(sessions: Sessions, params: FilesParams) -> RestoredFiles:
    """Return the effect of a restore, and write nothing; refuses as `restore`."""
    plan = _plan(sessions, params)
    _chosen(plan, params)
    shown = {each.path for each in plan.files} if params.texts else set[str]()
    shown &= params.named or shown
    in_git = _texts_in_git(sessions, plan, shown)
    rows = tuple(
        _beside_git(_row(each, plan.seen, texts=each.path in shown), each, plan, in_git)
        for each in plan.files
    )
    offered, same = (sum(row.offered for row in rows), sum(row.state == "same" for row in rows))
    left = [row.path for row in rows if not row.offered and row.state != "same"]
    return _answer(plan, None, plan_headline(offered, left, same), rows)


def _texts_in_git(sessions: Sessions, plan: _Plan, shown: set[str]) -> Mapping[str, str]:
    """Return the texts in git of files that may have replaced another one, by path."""
    asked = [each.path for each in plan.files if each.state == "new_or_replaced"]
    asked = [path for path in asked if path in shown]
    git = find(sessions.search_path, "git") if asked and plan.commit is not None else None
    if git is None or plan.commit is None:
        return {}
    root = root_of(plan.folder, plan.session_id)
    return git_objects.texts_at(git, root, plan.commit, asked, MOST_TEXT)


def _beside_git(
    row: RestoredFile, file: PlannedFile, plan: _Plan, in_git: Mapping[str, str]
) -> RestoredFile:
    """Return a row with the file's text in git, if any."""
    text = in_git.get(file.path)
    if text is None:
        return row
    why = f"{row.why}; git has a text of it in {(plan.commit or '')[:10]}, where the session began"
    return evolve(row, why=why, before=_shown(file.now), after=_shown(text))


def restore(sessions: Sessions, params: FilesParams) -> RestoredFiles:
    """Restore the chosen files.

    Refuses as `Sessions.find`, `unknown_turn`, `unknown_checkpoint`, `invalid_payload`,
    `missing_context` if the folder of the session is not on this machine, `storage_error`.
    """
    plan = _plan(sessions, params)
    chosen = {each.path for each in _chosen(plan, params)}
    changes = [change for each in plan.files if each.path in chosen for change in _changes(each)]
    done = FileRestoring(sessions, plan.session_id, plan.turn_id, plan.folder, plan.seen)
    operation_id, problems = done.write(changes)
    rows, left = list[RestoredFile](), dict[str, str]()
    for each in plan.files:
        row, problem = _row(each, plan.seen), problems.get(each.path)
        if each.path in chosen and problem is not None:
            row = evolve(row, why=f"left as it is: {problem}")
        elif each.path in chosen:
            row = evolve(row, written=True)
            if (stays := problems.get(each.moved_to or "")) is not None:
                row = evolve(row, why=f"{each.moved_to} stays: {stays}")
        rows.append(row)
        if _is_asked(each, params) and not row.written and row.state != "same":
            left[each.path] = problem or row.why or row.label
    written = sum(row.written for row in rows)
    headline = done_headline(written, left)
    return _answer(plan, operation_id if written else None, headline, tuple(rows))


def _answer(
    plan: _Plan, operation_id: str | None, headline: str, rows: tuple[RestoredFile, ...]
) -> RestoredFiles:
    commands = tuple(each.command for each in plan.unnamed if each.command)[-MOST_COMMANDS:]
    return RestoredFiles(
        operation_id,
        plan.session_id,
        plan.turn_id,
        plan.folder,
        headline,
        rows,
        len(plan.unnamed),
        commands_remark(len(plan.unnamed)),
        commands,
    )


def undo(sessions: Sessions, params: UndoFilesParams) -> RestoredFiles:
    """Put back the files that a restore replaced, under the same rules.

    Refuses `unknown_operation`, `missing_context`, `storage_error`.
    """
    made = _operation(sessions, params.operation_id)
    copies = SafetyCopies(sessions.records.state_dir)
    root = root_of(made.folder, made.session_id)
    seen: dict[str, ProjectFile] = {}
    changes, rows = list[FileChange](), list[RestoredFile]()
    for write in reversed(made.writes):
        now = project_files.look(root, write.path)
        known = now if isinstance(now, ProjectFile) else ProjectFile()
        seen[write.path] = known
        data = None if write.copy is None else copies.kept(made.operation_id, write.copy)
        state, why = _undo_state(write, now, data)
        rows.append(
            RestoredFile(
                write.path,
                state,
                LABELS[state],
                why,
                None,
                0,
                0,
                hash_of(known.data),
                write.before,
                None,
                offered=why is None,
                on=why is None,
                written=False,
            )
        )
        if why is None:
            changes.append(FileChange(write.path, data, write.mode, write.folders))
    done = FileRestoring(sessions, made.session_id, made.turn_id, made.folder, seen)
    operation_id, problems = done.write(changes, undoes=made.operation_id)
    asked = {each.path for each in changes}
    rows = [
        evolve(row, written=True)
        if row.path in asked and row.path not in problems
        else evolve(row, why=row.why or f"left as it is: {problems[row.path]}")
        for row in rows
    ]
    written = sum(row.written for row in rows)
    left = {row.path: problems.get(row.path, row.why or "") for row in rows if not row.written}
    return RestoredFiles(
        operation_id if written else None,
        made.session_id,
        made.turn_id,
        made.folder,
        undone_headline(written, left),
        tuple(rows),
        0,
        None,
        (),
    )


def _undo_state(
    write: FileWrite, now: ProjectFile | FileState, data: bytes | None
) -> tuple[FileState, str | None]:
    """Return the effect of an undo on a file, and the reason if it has none."""
    if not isinstance(now, ProjectFile):
        return now, "it cannot be looked at"
    if hash_of(now.data) != write.after:
        return "conflict", "it was changed since"
    if write.before is not None and data is None:
        return "unknown", "its safety copy is gone"
    if write.before is None:
        return "delete", None
    return ("create" if now.data is None else "restore"), None


def _operation(sessions: Sessions, name: str) -> FileRestore:
    for session_id in sorted(sessions.records.holding(FILE_RESTORES)):
        for each in _made(sessions, session_id):
            if each.operation_id == name:
                return each
    message = f"no restore of files {name[:80]!r}"
    hint = "`audit` lists the operations, those of files as `FilesRestored`."
    raise Refusal("unknown_operation", message, {"operationId": name[:200], "hint": hint})


# --- the plan ------------------------------------------------------------------------------------


def _plan(sessions: Sessions, params: FilesParams) -> _Plan:
    if (params.turn_id is None) == (params.checkpoint_id is None):
        raise misfit("name a turn or a marker, and not both")
    row, opened = sessions.open(params.session_id)
    wanted = params.turn_id
    if params.checkpoint_id is not None:
        wanted = Markers(sessions).find(row.session_id, params.checkpoint_id).turn_id
    replay = Replay()
    edits = Edits(replay)
    sessions.catalogue.read_with(replay, row)
    turn = find_turn(opened.now(), wanted or "", row.session_id)
    turns = replay.state.turns.turns
    own = next((each for each in turns if each.turn_id == turn.turn_id), turn)
    end = end_of(own, turns) or replay.scale.lines
    folder = replay.state.base
    root = root_of(folder, row.session_id)
    seen: dict[str, ProjectFile] = {}
    known: dict[str, OnDisk] = {}

    def look(uri: str) -> OnDisk:
        if uri not in known:
            found = project_files.look(root, uri)
            if isinstance(found, ProjectFile):
                seen[uri] = found
            known[uri] = _on_disk(found)
        return known[uri]

    hashes = sessions.projections.seen_of(opened)
    with keeping("record of copied files", row.session_id):
        copies = copies_of(sessions.records, row.session_id)
    files = planned(edits.files, end, look, lambda uri, each: hashes.get((uri, each.seq)), copies)
    made = _made(sessions, row.session_id)
    files = tuple(_known_again(each, turn.turn_id, seen, made) for each in files)
    unnamed = tuple(each for each in edits.unnamed if each.position > end)
    head = replay.state.head
    commit = None if head is None or head.git is None else head.git[0]
    return _Plan(row.session_id, turn.turn_id, folder or "", files, seen, unnamed, commit)


def _on_disk(found: ProjectFile | Problem) -> OnDisk:
    if not isinstance(found, ProjectFile):
        return OnDisk(problem=found)
    try:
        return OnDisk(None if found.data is None else found.data.decode())
    except UnicodeDecodeError:
        return OnDisk(problem="binary")


def _made(sessions: Sessions, session_id: str) -> list[FileRestore]:
    """Return the restores of files of a session, the newest first."""
    with keeping("records of restored files", session_id):
        found = file_restores_in(sessions.records.lines(session_id, FILE_RESTORES))
    return [*reversed(found.values())]


def _known_again(
    file: PlannedFile, turn_id: str, seen: Mapping[str, ProjectFile], made: Sequence[FileRestore]
) -> PlannedFile:
    """Mark a file as unchanged since its last restore, or name the restore to undo first."""
    now = seen.get(file.path)
    if now is None or file.state not in {"conflict", "gone"}:
        return file
    for each in made:
        write = next((write for write in each.writes if write.path == file.path), None)
        if write is None or write.after != hash_of(now.data):
            continue
        if each.turn_id == turn_id and each.undoes is None:
            return evolve(file, state="same", why=None, then=file.now)
        return evolve(file, why=f"it was restored to another turn; undo {each.operation_id} first")
    return file


def _chosen(plan: _Plan, params: FilesParams) -> list[PlannedFile]:
    """Return the files to restore; refuses `invalid_payload` for files missing from the plan."""
    known = {each.path: each for each in plan.files}
    if missing := params.named - known.keys():
        raise misfit(f"the session did not change {min(missing)[:200]} after that turn")
    if params.files is None and not params.merge:
        return [each for each in plan.files if each.is_on]
    merged = [known[each] for each in params.merge if known[each].state in {"merge", "restore"}]
    asked = [known[each] for each in params.files or () if known[each].state in OFFERED]
    on = [each for each in plan.files if each.is_on] if params.files is None else []
    return list({each.path: each for each in (*on, *asked, *merged)}.values())


def _is_asked(file: PlannedFile, params: FilesParams) -> bool:
    """Return whether a file is to be restored: it is named, or all that are on are restored."""
    return file.path in params.named or (file.is_on and params.files is None)


def _row(
    file: PlannedFile, seen: Mapping[str, ProjectFile], *, texts: bool = False
) -> RestoredFile:
    known = file.state in {*OFFERED, "same", "merge"}
    found = seen.get(file.path)
    return RestoredFile(
        file.path,
        file.state,
        LABELS[file.state],
        file.why,
        file.proof,
        file.added,
        file.removed,
        None if found is None else hash_of(found.data),
        hash_of(None if file.then is None else file.then.encode()) if known else None,
        file.moved_to,
        offered=file.is_offered,
        on=file.is_on,
        written=False,
        before=_shown(file.now) if texts and known else None,
        after=_shown(file.then) if texts and known else None,
    )


def _shown(text: str | None) -> str | None:
    """Return a text, None if it may not be shown: it is too long or holds a secret."""
    return None if text is None or len(text) > MOST_TEXT or redact(text) != text else text


def _changes(file: PlannedFile) -> Iterator[FileChange]:
    """Yield the changes of a planned file: new bytes are written before anything is removed."""
    yield FileChange(file.path, None if file.then is None else file.then.encode())
    if file.moved_to is not None:
        yield FileChange(file.moved_to, None)
