"""The strategy `codex`: Codex's own summary, which it makes in a scratch fork (CKP-20, CKP-24).

Waiting for Codex touches nothing of the service, so any thread may do it; what came of it is read
by the thread that owns the sessions.  It is foreign material: what may be kept of it is known to
`core.compaction.foreign`, and it is installed by `compacting` like our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_checkpoints.codex.app_server import AskingFailed, Declined
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.compaction.fitting import Fitted, TooLarge
from codex_checkpoints.core.compaction.foreign import handed_over
from codex_checkpoints.core.compaction.kinds import Kind, kind_of
from codex_checkpoints.core.compaction.records import Determinism, digest_of
from codex_checkpoints.core.history.tokens import of_item, of_items
from codex_checkpoints.core.rollout.fields import Json, text_of
from codex_checkpoints.service.compaction.source import Source
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen

MOST_REASON = 300

Summarise = Callable[[str, str, str | Excerpt, float, Callable[[], bool]], str]
"""Have a Codex compact a fork of a thread of a home, within seconds; return the fork's id."""

_COMES_ANEW: frozenset[Kind] = frozenset({"instructions", "context"})


@frozen
class Errand:
    """What Codex is asked for, and how long it may take."""

    summarise: Summarise
    codex: str
    codex_home: str
    session_id: str
    seconds: float
    excerpt: Excerpt | None = None

    def run(self, cancelled: Callable[[], bool]) -> str:
        """Return the id of the archived fork that Codex has compacted.

        Refuses `timed_out`, `codex_failed`; raises `Cancelled`.
        """
        try:
            return self.summarise(
                self.codex,
                self.codex_home,
                self.excerpt or self.session_id,
                self.seconds,
                cancelled,
            )
        except AskingFailed as error:
            raise self._refusal(error) from error

    def _refusal(self, error: AskingFailed) -> Refusal | Cancelled:
        facts: dict[str, object] = {"sessionId": self.session_id}
        match error.code:
            case "cancelled":
                return Cancelled()
            case "timed_out":
                facts |= {
                    "seconds": self.seconds,
                    "hint": "--timeout or the setting codexTimeoutSeconds allow for more.",
                }
                message = f"Codex made no summary within {self.seconds:g} seconds"
            case _:
                said = error.reason if isinstance(error, Declined) else str(error)
                reason = value(said, MOST_REASON) or "it did not say why"
                facts |= {
                    "reason": reason,
                    "hint": "The strategy `checkpoint` needs neither Codex nor a model.",
                }
                message = f"Codex made no summary: {reason}"
        return Refusal(error.code, message, facts)


def excerpt_of(sessions: Sessions, source: Source, room: int) -> Excerpt | TooLarge | None:
    """Return what is handed over of a session that does not fit into `room` tokens (CKP-22).

    None where a fork may have all of it.  Calls with their outputs go first.  A session that is
    compressed is handed over as well: Codex would unpack its file for a fork.
    """
    room -= source.traced.instructions
    history = source.traced.history.items
    if of_items(history) <= room and not _is_packed(sessions, source.row):
        return None
    items = [item for item in history if kind_of(item) not in _COMES_ANEW]
    match handed_over(items, room, of_item):
        case TooLarge() as too_large:
            return too_large
        case Fitted() as found:
            return Excerpt(
                [items[place] for place in found.kept],
                source.row.cwd,
                source.row.model,
                text_of(source.traced.head.get("model_provider")),
            )


def _is_packed(sessions: Sessions, row: Row) -> bool:
    """Return whether a rollout, or one that it builds on, is compressed."""
    below = sessions.catalogue.chains.below(row)
    return any(each.rollout.compressed for each in (row, *below))


def material(sessions: Sessions, source: Source, scratch_id: str) -> tuple[Json, ...]:
    """Return what Codex would send of the scratch fork now; refuses `codex_failed`."""
    row = sessions.catalogue.look_for(scratch_id)
    if row is not None:
        items = Histories(sessions).traced(row).history.items
        if digest_of(items) != digest_of(source.traced.history.items):
            return tuple(items)
    message = "Codex made no summary: its scratch fork holds none"
    facts = {"sessionId": source.session_id, "reason": "no summary in the scratch fork"}
    raise Refusal("codex_failed", message, facts)


def determinism_of(items: Sequence[Json]) -> Determinism:
    """Return who made it: a provider's service leaves what nobody else can read."""
    return "provider" if any(kind_of(item) == "compaction" for item in items) else "model"
