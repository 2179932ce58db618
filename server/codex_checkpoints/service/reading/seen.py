"""What files held right after a session observed them: `observed.jsonl` (rules, "Seen hashes")."""

from __future__ import annotations

import contextlib
from collections import ChainMap

from codex_checkpoints.core.checkpoint.state import SeenHashes
from codex_checkpoints.core.rollout.fields import renew
from codex_checkpoints.service.reading.chains import Chains, bases_of, copies_of, time_of
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.storage.durable import StorageError
from codex_checkpoints.storage.records import OBSERVED, Look, Records
from codex_checkpoints.storage.workspace import Workspace

_REMEMBERED = 32
_LATER_NS = 2_000_000_000
"""A file that changed so much later than the record may have been changed by somebody else."""


class SeenFiles:
    """The records of one home; whoever follows its sessions adds to them."""

    def __init__(self, chains: Chains, records: Records, workspace: Workspace) -> None:
        self._chains = chains
        self._records = records
        self._workspace = workspace
        self._known: dict[str, tuple[Look | None, SeenHashes]] = {}

    def of(self, opened: SessionFile) -> SeenHashes:
        """Return what was seen of the files of a session and of those it builds on."""
        shift = opened.now().scale.shift
        found: list[dict[tuple[str, int], str]] = []
        locate = self._chains.locator(opened.path)
        copies = copies_of(opened, locate, lambda thread: bool(self._lines(thread)))
        for base in (*bases_of(opened, locate), *copies):
            lines = self._lines(base.thread).items()
            kept = ((uri, seq, seen) for (uri, seq), seen in lines if seq - shift < base.below)
            found.append({(uri, seq + base.moved): seen for uri, seq, seen in kept})
        return ChainMap(*reversed(found), dict(self._lines(opened.session_id)))

    def look(self, opened: SessionFile) -> bool:
        """Record the files that are as they were when they were observed last.

        Return whether one has to be looked at again in a second.
        """
        replay, known = opened.now(), self.of(opened)
        latest: dict[str, int] = {}
        files = replay.state.observations.files()
        for uri, each in files.items():
            at = _ns(each.at) if (uri, each.seq) not in known else None
            if at is not None and not _is_copied(opened, at):
                latest[uri] = at + _LATER_NS
        found, waiting = self._workspace.quiet(replay.state.base, latest)
        if found:
            with contextlib.suppress(StorageError):  # as the checkpoint, which tells it
                seen = {(uri, files[uri].seq): value for uri, value in found.items()}
                self._records.add_observed(opened.session_id, seen)
        return waiting

    def _lines(self, session_id: str) -> SeenHashes:
        look = self._records.look(session_id, OBSERVED)
        known = self._known.get(session_id)
        if known is None or known[0] != look:
            with contextlib.suppress(StorageError):
                known = look, self._records.observed(session_id)
            known = known or (look, {})
        renew(self._known, session_id, known, _REMEMBERED)
        return known[1]


def _ns(stamp: str | None) -> int | None:
    moment = time_of(stamp)
    return None if moment is None else int(moment.timestamp() * 1000) * 1_000_000


def _is_copied(opened: SessionFile, at: int) -> bool:
    """Return whether a record may be a copy, with the time at which an older fork was made."""
    head = opened.head
    if head is None or head.forked_from is None or head.base is not None:
        return False
    made = _ns(head.timestamp)
    return made is None or at <= made + _LATER_NS
