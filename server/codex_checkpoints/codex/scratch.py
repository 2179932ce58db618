"""Have Codex compact a fork of a thread and put the fork away; the thread stays as it was.

It is Codex's own summary: by its configuration, its account, its model, over its network.  What it
wrote stands in the session file of the fork, and is read by `service.scratching`.

Codex itself ends when we do, since its input ends then.  So whoever is killed meanwhile leaves a
fork that nobody works on, and that is known again by what its head names as its source.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import cast

from codex_checkpoints.codex import IN_SCRATCH, SCRATCH
from codex_checkpoints.codex.app_server import (
    AppServer,
    AskingFailed,
    Declined,
    Message,
    Patience,
    app_server,
)
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)

NAME = "Scratch of codex-checkpoints"
"""What lists of sessions show, should a fork be left there."""

SECONDS_TO_ARCHIVE = 10.0
"""What putting the fork away may take, however the rest ended; it takes a fraction of one."""

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@frozen
class Excerpt:
    """A part of a history, for a thread that as a whole would not fit into the model's window.

    It is handed over to a new thread of the same folder, model and provider, as far as known.
    """

    items: Sequence[Message]
    cwd: str | None
    model: str | None
    provider: str | None


def compacted(
    codex: str,
    codex_home: str,
    what: str | Excerpt,
    environment: Mapping[str, str],
    patience: Patience,
) -> str:
    """Return the id of an archived fork of a thread, or of an excerpt, that Codex has compacted.

    Raises `AskingFailed`, and `Declined` with what Codex said where it could not, or would not.
    """
    environment = {**environment, IN_SCRATCH: "1"}
    with app_server(codex, codex_home, environment, patience) as (server, _):
        scratch = _begun(server, what)
        if _ID.fullmatch(scratch) is None or scratch == what:
            raise AskingFailed("codex_failed", "Codex named no fork")
        try:
            if isinstance(what, Excerpt):
                items = list(what.items)
                server.call("thread/inject_items", {"threadId": scratch, "items": items})
            server.call("thread/name/set", {"threadId": scratch, "name": NAME})
            server.call("thread/compact/start", {"threadId": scratch})
            _wait(server, scratch)
        finally:
            _put_away(server, scratch)
    return scratch


def _begun(server: AppServer, what: str | Excerpt) -> str:
    match what:
        case str() as thread_id:
            begun = _marked(server, "thread/fork", {"threadId": thread_id, "excludeTurns": True})
        case Excerpt():
            known = {"cwd": what.cwd, "model": what.model, "modelProvider": what.provider}
            asked = {name: value for name, value in known.items() if value is not None}
            begun = _marked(server, "thread/start", asked)
    return _text(_object(begun.get("thread")), "id")


def _marked(server: AppServer, method: str, asked: Message) -> Message:
    """Ask for a thread whose head says what it is for; not every Codex takes a word of ours."""
    try:
        return server.call(method, {**asked, "threadSource": SCRATCH})
    except Declined:
        return server.call(method, asked)


def _wait(server: AppServer, thread_id: str) -> None:
    """Wait until a compaction of a thread has ended well."""
    happened = False
    for method, params in server.news():
        if params.get("threadId") != thread_id:
            continue
        if method == "item/completed":
            item = _object(params.get("item"))
            happened = happened or item.get("type") == "contextCompaction"
        elif method == "turn/completed":
            turn = _object(params.get("turn"))
            if turn.get("status") != "completed":
                raise Declined(_text(_object(turn.get("error")), "message"))
            if not happened:
                raise Declined("")  # a hook of the user's stopped it
            return


def _put_away(server: AppServer, thread_id: str) -> None:
    """Archive a thread, which also ends what still runs in it."""
    try:
        patience = Patience(SECONDS_TO_ARCHIVE)
        server.call("thread/archive", {"threadId": thread_id}, patience)
    except AskingFailed as error:
        logger.warning("%s: the scratch fork %s is not archived", error.code, thread_id)


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}


def _text(message: Message, name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""
