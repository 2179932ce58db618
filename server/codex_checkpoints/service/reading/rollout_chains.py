"""Where each rollout lies, and which builds on which: a session may go on from older files.

What a rollout builds on is named by id, in its row; here the id becomes a place.  What the files
of a chain say together is known to `session_file`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from codex_checkpoints.threads.contract import Rollout, Row, ThreadStore


class Chains:
    """The chains of rollouts in one store, as of the last look."""

    def __init__(self, store: ThreadStore) -> None:
        """Begin with no rollout located; the rows are the store's."""
        self._store = store
        self._places: dict[str, str] = {}

    # --- what is told ----------------------------------------------------------------------------

    def begin(self, files: Iterable[Rollout]) -> None:
        """Take these as all rollouts that there are; an active file goes before its twin."""
        self._places = {}
        for file in files:
            if file.rollout_id not in self._places or not file.archived:
                self._places[file.rollout_id] = file.path

    def begin_at(self, places: Mapping[str, str]) -> None:
        """Take these paths by rollout id as all that there are."""
        self._places = dict(places)

    def add(self, files: Iterable[Rollout]) -> None:
        """Take in rollouts that were seen."""
        for file in files:
            self._places.setdefault(file.rollout_id, file.path)

    def forget(self, gone: Iterable[Row]) -> None:
        """Forget rollouts that are gone, of which the store has been told."""
        lost: set[str] = set()
        for row in gone:
            if self._places.get(row.rollout_id) == row.path:
                del self._places[row.rollout_id]
                lost.add(row.rollout_id)
        for row in self._store.rows().values() if lost else ():
            if row.rollout_id in lost:  # an archived twin, or one that is active again
                self._places.setdefault(row.rollout_id, row.path)

    # --- where they lie --------------------------------------------------------------------------

    def locate(self, rollout_id: str) -> str | None:
        """Return the path of a rollout by its id."""
        return self._places.get(rollout_id.lower())

    def locator(self, path: str) -> Callable[[str], str | None]:
        """Return how to find the bases of a file: in the home, then beside the file itself."""
        if path in self._store.rows():
            return self.locate
        beside = self._store.beside(path)
        return lambda rollout_id: self.locate(rollout_id) or beside.get(rollout_id.lower())

    # --- which builds on which -------------------------------------------------------------------

    def below(self, row: Row) -> Iterator[Row]:
        """Yield the rollouts that this one builds on, the nearest first."""
        seen = {row.path}
        step: Row | None = row
        while step is not None and step.base_rollout is not None:
            path = self.locate(step.base_rollout)
            if path is None or path in seen:
                return
            seen.add(path)
            step = self._store.rows().get(path)
            if step is not None:
                yield step

    def weight(self, row: Row) -> int:
        """Return how many bytes whoever reads a session reads, those it builds on included."""
        return sum(each.rollout.size for each in (row, *self.below(row)))

    def built_on(self, rollouts: set[str]) -> list[Row]:
        """Return the rollouts that build on one of these."""
        if not rollouts:
            return []
        by_rollout = {row.rollout_id: row for row in self._store.rows().values()}
        building: list[Row] = []
        for row in self._store.rows().values():
            step: Row | None = row
            seen: set[str] = set()
            while step is not None and step.base_rollout is not None and step.path not in seen:
                if step.base_rollout in rollouts:
                    building.append(row)
                    break
                seen.add(step.path)
                step = by_rollout.get(step.base_rollout)
        return building

    def sessions_on(self, sessions: Iterable[str]) -> set[str]:
        """Return the sessions that build on a rollout of one of these."""
        bases = set(sessions)
        return {
            row.session_id
            for row in self._store.current().values()
            if any(base.session_id in bases for base in self.below(row))
        }
