"""Pushes sessions to the remote: read and show the data, then send exactly that."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.redaction import KINDS_OF_SECRETS
from codex_checkpoints.operations.remote import MOUNT, opened_remote
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.remote.outgoing import (
    Outgoing,
    outgoing,
    refuse_never_pushed,
)
from codex_checkpoints.service.remote.push import Pusher
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.service.remote.unchanged import unchanged_row
from codex_checkpoints.storage.contract import Row, ThreadQuery
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import HistoryStore, team_store
from codex_checkpoints.storage.remote.spool import Spool

SHOWN_TEXTS = 10


@frozen
class PushParams:
    """Selects the sessions to push: named ones, else those in or below `cwd` changed since a time.

    `since` is ISO 8601; without a zone it is a local time.  `allowRedacted` also pushes sessions
    with more than 20 secrets, redacted.  `team` may read them; null: only their owner may.
    """

    session_ids: tuple[str, ...] = ()
    cwd: str | None = None
    since: str | None = None
    allow_redacted: bool = False
    team: str | None = None


@frozen
class PushedSession:
    """A session that was pushed, or would be.

    `bytes` is the size of its outgoing history, `sent` the bytes sent by this push.  `redacted`
    counts secrets by kind, `leftOut` dropped parts by kind: `images`, `encrypted`, `unreadable`.
    `state` is `new` before the push, then `pushed`, `unchanged` or `ahead`.
    """

    session_id: str
    title: str | None
    cwd: str | None
    lines: int
    bytes: int
    sent: int
    redacted: dict[str, int]
    left_out: dict[str, int]
    state: str


@frozen
class RefusedSession:
    """A session that is not pushed, and the reason."""

    session_id: str
    code: str
    message: str
    hint: str | None


@frozen
class LeavingText:
    """One of the longest outgoing texts: its place, its length, and its beginning."""

    session_id: str
    line: int
    chars: int
    beginning: str


@frozen
class Push:
    """The sessions to send, for a `team` or only for their owner.

    `kinds` is the number of secret kinds that redaction knows.
    """

    place: str
    sessions: tuple[PushedSession, ...]
    refused: tuple[RefusedSession, ...]
    longest: tuple[LeavingText, ...]
    kinds: int
    team: str | None = None


@frozen
class Preparation:
    """A push before it is sent: the account to show, and the sessions as they were read.

    It keeps them in a file until it is closed.
    """

    shown: Push
    going: tuple[Outgoing, ...]
    store: HistoryStore
    chosen: ChosenRemote
    spool: Spool
    team: str | None

    def close(self) -> None:
        """Release the sessions that were read."""
        self.spool.close()


def prepare_push(services: Services, params: PushParams) -> Preparation:
    """Read the sessions in their outgoing form; nothing is sent.

    A refused session is reported, and the others are read.
    """
    with opened_remote(services) as (chosen, store):
        if params.team is not None:
            team_store(store)
        if not store.is_made():
            message = f"there is no remote in {store.place}"
            raise Refusal("remote_unreachable", message, {"place": store.place, "hint": MOUNT})
        wanted = _chosen(services, params)
        with keeping("redacted lines", None):
            spool = Spool(services.where.state_dir)
        going: list[Outgoing] = []
        known: list[PushedSession] = []
        refused: list[RefusedSession] = []
        try:
            for number, session in enumerate(wanted):
                services.advanced(number, len(wanted))
                try:
                    there = _unchanged(services, store, session, params.team)
                    if there is None:
                        going.append(_read(services, session, spool, params))
                    else:
                        known.append(there)
                except Refusal as refusal:
                    if len(wanted) == 1:
                        raise
                    refused.append(_refused(session, refusal))
        except BaseException:
            spool.close()
            raise
    services.advanced(len(wanted), len(wanted))
    entries = (*(_shown(each, 0, "new") for each in going), *known)
    shown = Push(
        store.place, entries, tuple(refused), _longest(going), KINDS_OF_SECRETS, params.team
    )
    return Preparation(shown, tuple(going), store, chosen, spool, params.team)


def _unchanged(
    services: Services, store: HistoryStore, session: str, team: str | None
) -> PushedSession | None:
    """Return a session that is unchanged in the remote, without reading it."""
    row = services.sessions.own(session)
    refuse_never_pushed(services.sessions.settings.never_push, row, _homes(services))
    with remote_refusals(store):
        there = unchanged_row(services.sessions, store, row)
    if there is None or there.team != team:
        return None
    counts = there.lines, there.size, 0, there.secrets, there.left_out
    return PushedSession(session, there.title, there.cwd, *counts, "unchanged")


def _read(services: Services, session: str, spool: Spool, params: PushParams) -> Outgoing:
    homes, allowed = _homes(services), params.allow_redacted
    return outgoing(services.sessions, session, homes, spool, allow_redacted=allowed)


def _homes(services: Services) -> tuple[str, ...]:
    return os.path.expanduser("~"), services.where.codex_home


def _longest(going: Iterable[Outgoing]) -> tuple[LeavingText, ...]:
    texts = ((each.session_id, text) for each in going for text in each.longest)
    longest = sorted(texts, key=lambda pair: (-pair[1].chars, pair[0], pair[1].line))
    return tuple(
        LeavingText(session_id, text.line, text.chars, text.beginning)
        for session_id, text in longest[:SHOWN_TEXTS]
    )


def send(services: Services, prepared: Preparation) -> Push:
    """Send the prepared sessions, and not a line more."""
    pusher = Pusher(services.sessions, prepared.store, prepared.chosen, team=prepared.team)
    done: list[PushedSession] = []
    with closing(prepared.store):
        for number, going in enumerate(prepared.going):
            services.advanced(number, len(prepared.going))
            pushed = pusher.push(going)
            done.append(_shown(going, pushed.sent, pushed.state))
    services.advanced(len(prepared.going), len(prepared.going))
    shown = prepared.shown
    done += (each for each in shown.sessions if each.state == "unchanged")
    return evolve(shown, sessions=tuple(done))


def _chosen(services: Services, params: PushParams) -> list[str]:
    """Return the sessions to push: as named, else the matching ones, the latest first."""
    if params.session_ids:
        return [services.sessions.own(each).session_id for each in params.session_ids]
    since = _moment(params.since)
    page = services.sessions.catalogue.store.list_threads(ThreadQuery(cwd=params.cwd))
    rows = (each.row for each in page.items)
    return [row.session_id for row in rows if since is None or _time_of(row) >= since]


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise misfit(f"--since: {text[:40]!r} is not a date or a time, like 2026-11-28") from None


def _time_of(row: Row) -> datetime:
    return datetime.fromisoformat(row.at).astimezone(UTC)


def _shown(going: Outgoing, sent: int, state: str) -> PushedSession:
    return PushedSession(
        going.session_id,
        going.title,
        going.cwd,
        going.lines,
        going.size,
        sent,
        going.secrets,
        going.left_out,
        state,
    )


def _refused(session: str, refusal: Refusal) -> RefusedSession:
    hint = refusal.facts.get("hint")
    return RefusedSession(session, refusal.code, refusal.message, str(hint) if hint else None)


def looks(services: Services, params: PushParams) -> dict[str, object]:
    """Return a value by session that changes whenever a matching session grows."""
    current = services.sessions.catalogue.current()
    return {each: current[each].rollout.look for each in _chosen(services, params)}
