"""Which session is meant: by its id, by the beginning of it, by a file's path, or by who calls.

What sessions there are is known to `catalogue`, which turn of one is meant to `turn_names`.
"""

from __future__ import annotations

import os

from codex_checkpoints.service.reading.catalogue import Catalogue, unreadable
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.threads.contract import Rollout, Row

_SHORTEST_PREFIX = 8


def find_session(catalogue: Catalogue, session: str) -> Row:
    """Return the row of a session by id, by a unique prefix of one, or by path.

    Raises `unknown_session`, `ambiguous_session` or `unreadable_source`.  A session of which no
    file can be read has an id as any other, so the beginning of one may mean it, too.
    """
    if _is_path(session):
        return catalogue.row_at(session)
    current = catalogue.current()
    wanted = session.lower()
    if wanted in current:
        return current[wanted]
    if session in current:
        return current[session]
    broken = _broken(catalogue)
    if wanted in broken:
        raise broken[wanted]
    if len(session) >= _SHORTEST_PREFIX:
        fitting = sorted(each for each in {*current, *broken} if each.lower().startswith(wanted))
        if len(fitting) > 1:
            message = f"{len(fitting)} sessions begin with {session!r}"
            raise Refusal("ambiguous_session", message, {"candidates": fitting[:20]})
        for each in fitting:
            if each in current:
                return current[each]
            raise broken[each]
    message = f"no session {session[:80]!r} under {catalogue.place}"
    raise Refusal("unknown_session", message, {"session": session[:200]})


def may_mean(session: str, rollout: Rollout) -> bool:
    """Return whether `find_session` may come to this rollout, as far as its file's name tells."""
    if _is_path(session):
        return rollout.path == os.path.abspath(session)
    long_enough = len(session) >= _SHORTEST_PREFIX
    return long_enough and rollout.thread_id.lower().startswith(session.lower())


def session_of(catalogue: Catalogue, thread: object) -> str:
    """Return the session of the thread that calls, with its files looked at, and no others.

    `thread` is what the caller's host says; only a whole id counts.  Raises `missing_context`
    where it says nothing and `unknown_session` for a thread without a session file in this home.
    """
    if not isinstance(thread, str) or not thread:
        message = "the call does not say which session it comes from"
        hint = "Call from within Codex, which names the session in _meta.threadId."
        raise Refusal("missing_context", message, {"rule": "session", "hint": hint})
    row = catalogue.look_for(thread.lower())
    if row is None:
        message = "the session that calls has no file in this Codex home"
        hint = "Codex must store its sessions, in the folder that this server was given as home."
        raise Refusal("unknown_session", message, {"rule": "session", "hint": hint})
    return row.session_id


def not_current(catalogue: Catalogue, row: Row) -> Refusal:
    """Return the refusal to store anything for a file that is not the current one of a session.

    It says which it is: one outside this home, or an older one of its session.
    """
    if row.path in catalogue.rows():
        reason, what = "older_file", "is an older file of its session"
        hint = "Name the session by its id."
    else:
        reason, what = "outside", "lies outside the Codex home"
        hint = "Name a session of this home."
    message = f"{row.path} {what}: nothing is stored for it"
    facts = {"path": row.path, "reason": reason, "rule": "session", "hint": hint}
    return Refusal("conflict", message, facts)


def _broken(catalogue: Catalogue) -> dict[str, Refusal]:
    """Return by their ids the sessions of which no file can be read, with what is said of each."""
    current = catalogue.current()
    return {
        row.session_id: unreadable(row.path, row.error)
        for row in catalogue.rows().values()
        if row.error is not None and row.session_id not in current
    }


def _is_path(session: str) -> bool:
    return os.sep in session or "/" in session or session.endswith((".jsonl", ".jsonl.zst"))
