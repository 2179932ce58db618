"""Pushes sessions to the remote: read and show the data, then send exactly that."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.redaction import KINDS_OF_SECRETS
from codex_checkpoints.operations.remote import MOUNT, chosen_remote_of, remotely
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.progress import Steps
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.remote.kept_preview import KeptPreview
from codex_checkpoints.service.remote.outgoing import (
    Outgoing,
    is_never_pushed,
    outgoing,
)
from codex_checkpoints.service.remote.push import Pushed, Pusher
from codex_checkpoints.service.remote.unchanged import inputs_of, pushed_version, unchanged_rows
from codex_checkpoints.storage.contract import Row, ThreadQuery
from codex_checkpoints.storage.remote.address import is_address
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import (
    HistoryStore,
    SessionRow,
    TeamStore,
    team_store,
)
from codex_checkpoints.storage.remote.spool import Spool

SHOWN_TEXTS = 10
_CAUTION = (
    f"Redaction knows {KINDS_OF_SECRETS} kinds of secrets and no more: a secret of another kind, "
    "or one in plain words, leaves."
)


@frozen
class ShownSession:
    """A session that was shown before a push: its `lines`, and the `digest` of all of them."""

    session_id: str
    lines: int
    digest: str


@frozen
class PushParams:
    """Selects the sessions to push: named ones, else those in or below `cwd` changed since a time.

    `since` is ISO 8601; without a zone it is a local time.  `allowRedacted` also pushes sessions
    with more than 20 secrets, redacted.  `team` may read them; null: only their owner may.  With
    `dryRun` nothing is sent.  `shown` are the sessions of such an answer: exactly their lines are
    sent, although a session may have grown.
    """

    session_ids: tuple[str, ...] = ()
    cwd: str | None = None
    since: str | None = None
    allow_redacted: bool = False
    team: str | None = None
    dry_run: bool = False
    shown: tuple[ShownSession, ...] | None = None
    work_done_token: int | str | None = None


@frozen
class PushedSession:
    """A session that was pushed, or would be.

    `bytes` is the size of its outgoing history, `sent` the bytes sent by this push.  `redacted`
    counts secrets by kind, `leftOut` dropped parts by kind: `images`, `audio`, `binary`,
    `encrypted`, `unreadable`.
    `state` is `new` before the push, then `pushed`, `unchanged` or `ahead`.  `digest` is the hash
    of its outgoing history.
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
    digest: str


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

    `kinds` is the number of secret kinds that redaction knows, and `caution` says what that means
    for a person; `teams` are those for which this login can push; a folder has none.
    """

    place: str
    sessions: tuple[PushedSession, ...]
    refused: tuple[RefusedSession, ...]
    longest: tuple[LeavingText, ...]
    kinds: int
    caution: str
    team: str | None = None
    teams: tuple[str, ...] = ()


@frozen
class Preparation:
    """A push before it is sent: the account to show, and the sessions as they were read.

    It keeps them in a file until it is closed; those of an earlier preview are in the file of
    `preview`.
    """

    shown: Push
    going: tuple[Outgoing, ...]
    chosen: ChosenRemote
    spool: Spool
    preview: KeptPreview

    def close(self) -> None:
        """Release the sessions that were read."""
        self.spool.close()
        self.preview.close()


def push(services: Services, params: PushParams) -> Steps[Push]:
    """Push sessions, or only preview the push; the preview is kept for the push after it."""
    prepared = yield from prepare_push(services, params)
    if params.dry_run:
        services.preview.keep(
            prepared.spool,
            prepared.going,
            prepared.chosen.place,
            allow_redacted=params.allow_redacted,
        )
        return prepared.shown
    with closing(prepared):
        return (yield from send(services, prepared))


def prepare_push(services: Services, params: PushParams) -> Steps[Preparation]:
    """Read the sessions in their outgoing form; nothing is sent.

    A push does not read again those that are unchanged since their preview.  A refused session is
    reported, and the others are read.
    """
    chosen = chosen_remote_of(services)
    services.find_new_files()
    wanted = _chosen(services, params)
    unchanged, teams = yield from _asked(services, chosen, wanted, params.team)
    preview = services.preview.take()
    if params.dry_run:
        preview.close()
    with keeping("redacted lines", None):
        spool = Spool(services.where.state_dir)
    going: list[Outgoing] = []
    known: list[PushedSession] = []
    refused: list[RefusedSession] = []
    try:
        for number, session in enumerate(wanted):
            services.advanced(number, len(wanted))
            try:
                if session in unchanged:
                    known.append(unchanged[session])
                else:
                    kept = _kept(services, chosen, session, preview, params)
                    going.append(kept or _read(services, chosen, session, spool, params))
            except Refusal as refusal:
                if len(wanted) == 1:
                    raise
                refused.append(_refused(session, refusal))
    except BaseException:
        spool.close()
        preview.close()
        raise
    services.advanced(len(wanted), len(wanted))
    entries = (*(_shown(each, 0, "new") for each in going), *known)
    push = Push(
        chosen.place,
        entries,
        tuple(refused),
        _longest(going),
        KINDS_OF_SECRETS,
        _CAUTION,
        params.team,
        teams,
    )
    return Preparation(push, tuple(going), chosen, spool, preview)


def _asked(
    services: Services, chosen: ChosenRemote, wanted: Iterable[str], team: str | None
) -> Steps[tuple[dict[str, PushedSession], tuple[str, ...]]]:
    """Return the sessions that are unchanged in the remote, without reading them, and the teams."""
    rows = [services.sessions.own(session) for session in wanted]
    never = services.sessions.settings.never_push
    versions: dict[str, str] = {}
    for row in rows:
        version = pushed_version(services.sessions, chosen.place, row)
        if version is not None and not is_never_pushed(never, row, _homes(services)):
            versions[row.session_id] = version

    def ask(store: HistoryStore) -> tuple[dict[str, SessionRow], tuple[str, ...]]:
        if team is not None:
            team_store(store)
        if not store.is_made():
            message = f"there is no remote in {store.place}"
            raise Refusal("remote_unreachable", message, {"place": store.place, "hint": MOUNT})
        teams = store.teams() if isinstance(store, TeamStore) else ()
        return unchanged_rows(store, versions), teams

    there, teams = yield from remotely(chosen, ask)
    unchanged = {
        each.session_id: PushedSession(
            each.session_id,
            each.title,
            each.cwd,
            each.lines,
            each.size,
            0,
            each.secrets,
            each.left_out,
            "unchanged",
            each.prefix,
        )
        for each in there.values()
        if each.team == team
    }
    return unchanged, teams


def _kept(
    services: Services,
    chosen: ChosenRemote,
    session: str,
    preview: KeptPreview,
    params: PushParams,
) -> Outgoing | None:
    """Return a session as its preview has it, None if it has changed or was not shown like that."""
    kept = preview.session(session, chosen.place, allow_redacted=params.allow_redacted)
    if kept is None or kept.inputs != inputs_of(services.sessions, services.sessions.own(session)):
        return None
    shown = ShownSession(session, kept.lines, kept.prefix)
    return kept if params.shown is None or shown in params.shown else None


def _read(
    services: Services, chosen: ChosenRemote, session: str, spool: Spool, params: PushParams
) -> Outgoing:
    """Read a session; refuses `conflict` if its shown lines are different now."""
    shown = next((each for each in params.shown or () if each.session_id == session), None)
    going = outgoing(
        services.sessions,
        session,
        _homes(services),
        spool,
        allow_redacted=params.allow_redacted,
        lines=None if shown is None else shown.lines,
        indexed=is_address(chosen.place),
    )
    if shown is not None and going.prefix != shown.digest:
        message = f"session {session} has changed since it was shown"
        hint = "Look at what leaves again."
        facts = {"sessionId": session, "reason": "changed_since_shown", "hint": hint}
        raise Refusal("conflict", message, facts)
    return going


def _homes(services: Services) -> tuple[str, ...]:
    return os.path.expanduser("~"), services.where.codex_home


def _longest(going: Iterable[Outgoing]) -> tuple[LeavingText, ...]:
    texts = ((each.session_id, text) for each in going for text in each.longest)
    longest = sorted(texts, key=lambda pair: (-pair[1].chars, pair[0], pair[1].line))
    return tuple(
        LeavingText(session_id, text.line, text.chars, text.beginning)
        for session_id, text in longest[:SHOWN_TEXTS]
    )


def send(services: Services, prepared: Preparation) -> Steps[Push]:
    """Send the prepared sessions, and not a line more."""
    shown, done = prepared.shown, list[PushedSession]()
    for number, going in enumerate(prepared.going):
        services.advanced(number, len(prepared.going))
        pushed = yield from remotely(prepared.chosen, partial(_push, services, prepared, going))
        done.append(_shown(going, pushed.sent, pushed.state))
    services.advanced(len(prepared.going), len(prepared.going))
    done += (each for each in shown.sessions if each.state == "unchanged")
    return evolve(shown, sessions=tuple(done))


def _push(
    services: Services, prepared: Preparation, going: Outgoing, store: HistoryStore
) -> Pushed:
    pusher = Pusher(
        services.sessions,
        store,
        prepared.chosen,
        team=prepared.shown.team,
        is_cancelled=services.is_cancelled,
    )
    return pusher.push(going)


def _chosen(services: Services, params: PushParams) -> list[str]:
    """Return the sessions to push: as named, else the matching ones, the latest first."""
    if not params.session_ids and params.cwd is None and params.since is None:
        raise misfit("sessionIds, cwd or since: which sessions?")
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
        going.prefix,
    )


def _refused(session: str, refusal: Refusal) -> RefusedSession:
    hint = refusal.facts.get("hint")
    return RefusedSession(session, refusal.code, refusal.message, str(hint) if hint else None)


def versions(services: Services, params: PushParams) -> dict[str, str]:
    """Return the version of the newest rollout of each matching session, by session."""
    current = services.sessions.catalogue.current()
    return {each: current[each].rollout.version for each in _chosen(services, params)}
