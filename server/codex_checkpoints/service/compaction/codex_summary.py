"""Lets Codex make a summary: its input, its time limit, and its result (CKP-20, CKP-22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from codex_checkpoints.codex.app_server import AskingFailed, RequestDeclined
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.agents.codex.history.item_kinds import ItemKind, kind_of
from codex_checkpoints.core.agents.codex.history.tokens import of_item, of_items
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.compaction.adoption import handed_over
from codex_checkpoints.core.compaction.records import Determinism, digest_of
from codex_checkpoints.core.compaction.replacement import Declined, NewestTooLarge
from codex_checkpoints.core.fields import Json, text_of
from codex_checkpoints.service.compaction.request import Summarise, declined_by
from codex_checkpoints.service.compaction.source import CompactionSource
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.sessions.sessions import Sessions

LONGEST_REASON = 300

BASE_TOKENS = 6_000
"""Tokens of base instructions if the session file does not hold them, as in older ones."""

CONTEXT_TOKENS = 2_000
"""Minimum tokens of a new thread's context and the request for a summary."""

_SENT_AGAIN: frozenset[ItemKind] = frozenset({"instructions", "context"})


@frozen
class Job:
    """A summary for Codex to make, and its timeout."""

    summarise: Summarise
    codex: str
    codex_home: str
    session_id: str
    seconds: float
    excerpt: Excerpt | None = None

    def run(self, cancelled: Callable[[], bool]) -> str:
        """Return the id of the fork; refuses `timed_out`, `codex_failed`; raises `Cancelled`."""
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
                answer = error.reason if isinstance(error, RequestDeclined) else str(error)
                reason = value(answer, LONGEST_REASON) or "it did not say why"
                facts |= {
                    "reason": reason,
                    "hint": "The strategy `checkpoint` needs neither Codex nor a model.",
                }
                message = f"Codex made no summary: {reason}"
        return Refusal(error.code, message, facts)


def excerpt_of(sessions: Sessions, source: CompactionSource, room: int) -> Excerpt | None:
    """Return the part of a session that fits into `room` tokens (CKP-22); calls go first.

    Base instructions, tools and context take room as well.  None if Codex can fork the whole
    session.  A compressed session gives an excerpt too: Codex would unpack its file for a fork.
    Refuses `item_too_large`.
    """
    history, context = source.traced.history.items, source.traced.history.context
    # Reports that count content which the session has lost must not leave it without room.
    beside = min(context.beside or 0, room // 2)
    room -= max(source.traced.outline.instructions or BASE_TOKENS, beside)
    if context.history <= room:
        rows = (source.row, *sessions.catalogue.chains.below(source.row))
        if not any(each.rollout.compressed for each in rows):
            return None
    items = [item for item in history if kind_of(item) not in _SENT_AGAIN]
    sent_again = max(CONTEXT_TOKENS, context.history - of_items(items))
    found = handed_over(items, max(0, room - sent_again), of_item)
    if isinstance(found, NewestTooLarge):
        facts = {"tokens": found.tokens, "target": found.limit}
        raise declined_by(Declined("item_too_large", facts), source)
    return Excerpt(
        [items[place] for place in found.kept],
        source.row.folder or None,
        source.row.model,
        text_of(source.traced.head.get("model_provider")),
    )


def material(sessions: Sessions, source: CompactionSource, scratch_id: str) -> tuple[Json, ...]:
    """Return the history of a scratch fork; refuses `codex_failed`."""
    row = sessions.catalogue.refresh_thread(scratch_id)
    if row is not None:
        items = Histories(sessions).traced(row).history.items
        if digest_of(items) != digest_of(source.traced.history.items):
            return tuple(items)
    message = "Codex made no summary"
    facts = {"sessionId": source.session_id, "reason": "no summary in the scratch fork"}
    raise Refusal("codex_failed", message, facts)


def determinism_of(items: Sequence[Json]) -> Determinism:
    """Return who made a summary: only a provider leaves a `compaction` item."""
    return "provider" if any(kind_of(item) == "compaction" for item in items) else "model"


def no_preview(source: CompactionSource, seconds: float) -> Refusal:
    """Return the refusal to preview a model's summary."""
    before = source.traced.history.context.usable
    size = f"{before.tokens} tokens ({before.source})"
    message = f"a preview never calls a model, and this summary needs one; the size now is {size}"
    facts = {
        "sessionId": source.session_id,
        "strategy": "codex",
        "tokensBefore": before.tokens,
        "tokensBeforeSource": before.source,
        "seconds": seconds,
        "hint": "A compaction can be undone with uncompact.",
    }
    return Refusal("no_preview", message, facts)
