"""Makes checkpoints of sessions, and stores them."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import re
from collections import ChainMap
from collections.abc import Container, Iterable

from attrs import frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Caps, Checkpoint, Limits, to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import SeenHashes
from codex_checkpoints.core.fields import renew
from codex_checkpoints.service.reading.rollout_bases import bases_of, copies_of, inherited, time_of
from codex_checkpoints.service.reading.session_file import SessionFile, end_of, find_turn
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.service.refusal import reading
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import OBSERVED, FileStamp, Records, stamp_at
from codex_checkpoints.storage.workspace import Workspace

logger = logging.getLogger(__name__)

_REMEMBERED = 32
_LATER_NS = 2_000_000_000
"""If a file changed this much later than the record, someone else may have changed it."""


def _ns(stamp: str | None) -> int | None:
    moment = time_of(stamp)
    return None if moment is None else int(moment.timestamp() * 1000) * 1_000_000


def _is_copied(opened: SessionFile, at: int) -> bool:
    """Return whether a record may be a copy, whose time is when the fork was made."""
    head = opened.head
    if head is None or head.forked_from is None or head.base is not None:
        return False
    made = _ns(head.timestamp)
    return made is None or at <= made + _LATER_NS


@frozen
class StoredCheckpoint:
    """A checkpoint, its bytes, and the result of storing it.

    `stored` is its path, None if it should not be stored; `changed` says whether it was written;
    `storage_problem` is the system's reason if storing failed.
    """

    session_id: str
    checkpoint: Checkpoint
    data: bytes
    stored: str | None = None
    changed: bool = False
    storage_problem: str | None = None


@frozen
class View:
    """The view of a session, the caps it was made with, and its checkpoint."""

    text: str
    caps: Caps
    of: StoredCheckpoint


class Checkpoints:
    """Makes the checkpoints of the sessions of one home."""

    def __init__(self, catalogue: SessionIndex, records: Records, workspace: Workspace) -> None:
        self._catalogue = catalogue
        self._records = records
        self._workspace = workspace
        self._observed: dict[str, tuple[FileStamp | None, SeenHashes]] = {}
        self.storage_problem: str | None = None
        """Why the last checkpoint could not be stored."""
        self._stored: dict[str, tuple[FileStamp | None, dict[str, str | None]]] = {}
        self.follows = False
        """Whether this process follows sessions live and records observations of their files."""
        self.waiting: set[str] = set()
        """Sessions with an observed file that changed less than a second before the last check."""

    def take_waiting(self) -> set[str]:
        """Return, once, the sessions with a file that changed less than a second ago."""
        waiting, self.waiting = self.waiting, set()
        return waiting

    def current(self, opened: SessionFile) -> Checkpoint:
        """Return the checkpoint of a session as it was read, with the current hashes."""
        return self.project(opened, opened.now(), self.updates_of(opened))

    def keep(self, row: Row, opened: SessionFile) -> StoredCheckpoint:
        """Make the checkpoint of a session and store it if its bytes changed."""
        if not self._catalogue.is_current(row):
            # A file from elsewhere, or an older segment, does not make the session's checkpoint.
            checkpoint = self.current(opened)
            return StoredCheckpoint(row.session_id, checkpoint, to_bytes(checkpoint))
        if self.follows and self._look(opened):
            self.waiting.add(row.session_id)
        checkpoint = self.current(opened)
        data = to_bytes(checkpoint)
        path = self._records.checkpoint_path(row.session_id, row.path)
        try:
            changed = self._records.write_checkpoint(row.session_id, row.path, data)
        except StorageError as error:
            if self.storage_problem != str(error):  # once, not for every session
                logger.warning("storage_error: %s cannot be stored: %s", path, error)
            self.storage_problem = str(error)
            return StoredCheckpoint(row.session_id, checkpoint, data, storage_problem=str(error))
        if changed:
            self.storage_problem = None
        return StoredCheckpoint(row.session_id, checkpoint, data, path, changed)

    def is_outdated(self, row: Row) -> bool:
        """Return whether a file's current hash differs from the stored checkpoint, if any."""
        path = self._records.checkpoint_path(row.session_id, row.path)
        stamp = None if path is None else stamp_at(path)
        known = self._stored.get(row.session_id)
        if known is None or known[0] != stamp:
            stored = None if stamp is None else self._records.checkpoint(row.session_id, row.path)
            artifacts = () if stored is None else stored.artifacts.values()
            hashed = (each for each in artifacts if each.kind == "file")
            hashes = {each.uri: each.hash for each in hashed if each.hash or each.seen_hash}
            known = self._stored[row.session_id] = stamp, hashes
        hashes = known[1]
        now = self._workspace.looks(row.base, hashes) if hashes else {}
        return any(now.get(uri) != found for uri, found in hashes.items())

    def at(self, row: Row, opened: SessionFile, turn: str | int) -> StoredCheckpoint:
        """Return the checkpoint at the end of a turn; it is not stored."""
        replay = opened.now()
        found = find_turn(replay, turn, row.session_id)
        until = end_of(found, replay.state.turns.turns)
        updates = self.updates_of(opened)
        if until is not None:
            replay = self._catalogue.read(row, until).now()
            updates = tuple(update for update in updates if update.seq <= replay.seq)
        checkpoint = self.project(opened, replay, updates)
        return StoredCheckpoint(row.session_id, checkpoint, to_bytes(checkpoint))

    def updates(self, session_id: str) -> tuple[Update, ...]:
        """Return the updates accepted in a session itself; refuses `storage_error`."""
        with reading("accepted updates", session_id):
            return self._records.updates(session_id)

    def updates_of(self, opened: SessionFile) -> tuple[Update, ...]:
        """Return the updates that a session inherits, then its own; refuses as `updates`."""
        locate = self._catalogue.chains.locator(opened.path)
        return (*inherited(opened, locate, self.updates), *self.updates(opened.session_id))

    def seen_of(self, opened: SessionFile) -> SeenHashes:
        """Return the hashes of files right after the session, or one of its bases, observed them.

        They are recorded in `observed.jsonl` (rules, "Seen hashes").
        """
        shift = opened.now().scale.shift
        found: list[dict[tuple[str, int], str]] = []
        locate = self._catalogue.chains.locator(opened.path)
        copies = copies_of(opened, locate, lambda thread: bool(self._lines(thread)))
        for base in (*bases_of(opened, locate), *copies):
            lines = self._lines(base.thread).items()
            kept = ((uri, seq, seen) for (uri, seq), seen in lines if seq - shift < base.below)
            found.append({(uri, seq + base.moved): seen for uri, seq, seen in kept})
        return ChainMap(*reversed(found), dict(self._lines(opened.session_id)))

    def _look(self, opened: SessionFile) -> bool:
        """Record the files that are unchanged since they were last observed.

        Return whether one has to be checked again in a second.
        """
        replay, known = opened.now(), self.seen_of(opened)
        latest: dict[str, int] = {}
        files = replay.state.observations.files()
        for uri, each in files.items():
            at = _ns(each.at) if (uri, each.seq) not in known else None
            if at is not None and not _is_copied(opened, at):
                latest[uri] = at + _LATER_NS
        found, waiting = self._workspace.quiet(replay.state.base, latest)
        if found:
            with contextlib.suppress(StorageError):  # as for the checkpoint, which reports it
                seen = {(uri, files[uri].seq): value for uri, value in found.items()}
                self._records.add_observed(opened.session_id, seen)
        return waiting

    def _lines(self, session_id: str) -> SeenHashes:
        stamp = self._records.stamp(session_id, OBSERVED)
        known = self._observed.get(session_id)
        if known is None or known[0] != stamp:
            with contextlib.suppress(StorageError):
                known = stamp, self._records.observed(session_id)
            known = known or (stamp, {})
        renew(self._observed, session_id, known, _REMEMBERED)
        return known[1]

    def project(self, opened: SessionFile, replay: Replay, updates: Iterable[Update]) -> Checkpoint:
        """Return the checkpoint at the end of a replay, with the current hashes of files.

        Nothing is stored.
        """
        looks = self._workspace.looks(replay.state.base, replay.files())
        return replay.checkpoint(updates, looks, seen=self.seen_of(opened))


@frozen
class Strayed:
    """Files that Codex edited although neither the plan nor recent work mentions them.

    Sent only if the setting `driftGuard` asks for it, once for the new records of a session.  `seq`
    is the session's `seq` after them.
    """

    session_id: str
    uris: tuple[str, ...]
    seq: int


class DriftDetector:
    """The previous checkpoints, and the files that were edited outside them."""

    def __init__(self) -> None:
        self._before: dict[str, Checkpoint] = {}
        self._strayed: list[Strayed] = []

    def look(self, replay: Replay, now: StoredCheckpoint) -> None:
        """Compare the new edits of a session with its checkpoint before them."""
        before = self._before.get(now.session_id)
        self._before[now.session_id] = now.checkpoint
        if before is None or now.checkpoint.seq <= before.seq:
            return
        kept = replay.state.observations.kept(Limits())
        edits = sorted((each.edited, uri) for uri, each in kept.items() if each.edited > before.seq)
        uris = straying(before, (uri for _, uri in edits))
        if uris:
            self._strayed.append(Strayed(now.session_id, uris, now.checkpoint.seq))

    def take(self) -> tuple[Strayed, ...]:
        """Return, once, the strayed files since the last call."""
        strayed, self._strayed = tuple(self._strayed), []
        return strayed

    def forget_all_but(self, sessions: Container[str]) -> None:
        """Forget the sessions that are no longer followed."""
        for session in [each for each in self._before if each not in sessions]:
            del self._before[session]


_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset({"test", "tests"})


def straying(before: Checkpoint, edited: Iterable[str]) -> tuple[str, ...]:
    """Return the uris of edited files that are not related to the checkpoint before (DSC-68).

    A file is related to it if one of these holds; without an open step and a recent artifact every
    one is:

    1. it is among the recent artifacts;
    2. it is in the folder of a recent file, other than the top folder;
    3. the task, an open plan step or a recent command names it: by its whole name, or by a word of
       four letters or more of its name without the ending (`refresh` of `test_refresh.py`, not
       `test`).
    """
    plan = before.plan
    steps = [step.text for step in plan.steps if not plan.done.get(step.id)]
    recent = set(before.recent_artifacts)
    if not steps and not recent:
        return ()
    artifacts = [before.artifacts[uri] for uri in recent if uri in before.artifacts]
    folders = {posixpath.dirname(each.uri) for each in artifacts if each.kind == "file"} - {"", "/"}
    commands = [each.uri for each in artifacts if each.kind == "command"]
    task = [] if before.task is None else [before.task.text]
    text = "\n".join((*task, *steps, *commands)).casefold()
    words = set(_WORD.findall(text)) - _COMMON

    def is_related(uri: str) -> bool:
        name = posixpath.basename(uri).casefold()
        return (
            uri in recent
            or posixpath.dirname(uri) in folders
            or re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None
            or not words.isdisjoint(_WORD.findall(posixpath.splitext(name)[0]))
        )

    return tuple(uri for uri in dict.fromkeys(edited) if not is_related(uri))
