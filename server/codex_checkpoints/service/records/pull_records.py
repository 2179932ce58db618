"""The records of pulled sessions: where a branch came from, and the lineage above its source."""

from __future__ import annotations

from collections.abc import Container, Iterator

from attrs import define, frozen

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.portable.pack import PackedLink
from codex_checkpoints.core.restore.lineage import Cut, Link
from codex_checkpoints.service.records.operation_records import storing_restore
from codex_checkpoints.storage.records import PULLS, Records


@frozen
class Pull:
    """A pull: the branch that it made, and how far its source had come in the remote.

    `lineage` are the links above the source, the nearest first; `title` is the title of the source.
    """

    operation_id: str
    session_id: str
    source_session_id: str
    pulled_at: str
    owner: str
    machine: str
    generation: int
    size: int
    prefix: str
    lineage: tuple[PackedLink, ...] = ()
    title: str | None = None

    @property
    def link(self) -> Link:
        """Return the link from the branch to its source."""
        return Link(self.session_id, self.source_session_id, "pull", Cut(), self.pulled_at)

    def links(self, here: Container[str]) -> Iterator[Link]:
        """Yield the links of branch and source; sessions that are `here` keep their own parents."""
        yield self.link
        for each in self.lineage:
            if each.child in here:
                break
            cut = Cut(turn_id=each.turn_id, checkpoint_id=each.checkpoint_id)
            yield Link(each.child, each.parent, each.kind, cut, each.at)


@define
class PullRecords:
    """The records of all pulls."""

    _records: Records

    def made(self, session_id: str) -> Pull | None:
        """Return the pull that made a session, or None; refuses `storage_error`."""
        with storing_restore(session_id):
            lines = [*self._records.lines(session_id, PULLS)]
        found = (read_or_none(stored, line, Pull) for line in lines)
        return next((each for each in found if each and each.session_id == session_id), None)

    def of(self, session_id: str) -> Iterator[Pull]:
        """Yield the pull that made a session, and those of which it is the source."""
        return (
            each for each in self.all() if session_id in {each.session_id, each.source_session_id}
        )

    def from_source(self, source_id: str) -> list[Pull]:
        """Return the pulls of a session in the remote, the oldest first."""
        found = (each for each in self.of(source_id) if each.source_session_id == source_id)
        return sorted(found, key=lambda each: each.pulled_at)

    def all(self) -> Iterator[Pull]:
        """Yield every record, by session."""
        for session_id in sorted(self._records.holding(PULLS)):
            made = self.made(session_id)
            if made is not None:
                yield made
