"""Returns the digest of a session, and records of it."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.digest.render import Digest as SessionDigest
from codex_checkpoints.core.recall.entries import MOST_HITS
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.history.digests import Digests, Hit, Recalled
from codex_checkpoints.service.refusal import misfit


@frozen
class DigestParams:
    """A session, a turn for the digest at its end, and the budget, null for the usual one."""

    session_id: str
    turn_id: str | None = None
    tokens: int | None = None


@frozen
class RecallParams:
    """A session, and the anchor of a record of it, or a text that lines contain.

    `ref` is `#12`, `12`, `t3`, or the id of a message or a call; the text is given from `offset`
    on, or from a little above the first line that contains `near`, a line as a search returns it.
    `limit` is the most lines for a `query`.
    """

    session_id: str
    ref: str | None = None
    query: str | None = None
    offset: int = 0
    near: str | None = None
    limit: int = 50


@frozen
class RecallAnswer:
    """The record of an anchor, or the lines that contain a text, the newest first."""

    record: Recalled | None
    items: tuple[Hit, ...]


def digest(services: Services, params: DigestParams) -> SessionDigest:
    """Return the digest of a session."""
    return Digests(services.sessions).digest(params.session_id, params.turn_id, params.tokens)


def recall(services: Services, params: RecallParams) -> RecallAnswer:
    """Return the record of an anchor, or the lines that contain a text."""
    digests = Digests(services.sessions)
    if (params.ref is None) == (params.query is None):
        raise misfit("params: needs ref or query, one of them")
    if params.offset < 0 or not 1 <= params.limit <= MOST_HITS:
        raise misfit("params: offset must be 0 or more, limit 1 to 1000")
    if params.ref is not None:
        found = digests.recall(params.session_id, params.ref, params.offset, near=params.near)
        return RecallAnswer(found, ())
    return RecallAnswer(None, digests.search(params.session_id, params.query or "", params.limit))
