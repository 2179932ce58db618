"""Finds Codex's own program and its version, and sends requests to its app server.

If Codex keeps a database, a thread that is archived without it cannot be resumed.  A scratch fork
is a copy of a thread that Codex compacts, by its own configuration and model, and archives; a
killed process leaves a fork that its head identifies.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from codex_checkpoints.codex import IN_SCRATCH, SCRATCH
from codex_checkpoints.codex.app_server import (
    AppServer,
    AskingFailed,
    Deadline,
    Message,
    RequestDeclined,
    app_server,
)
from codex_checkpoints.core.fields import list_of, object_of, text_of

logger = logging.getLogger(__name__)

SECONDS = 10.0
"""Timeout for Codex to list its hooks; it takes a fraction of a second."""

SECONDS_TO_MOVE = 30.0
"""Timeout for Codex to start, and again to archive one thread; it takes a second."""

SECONDS_TO_ARCHIVE = 10.0
"""Timeout for archiving the scratch fork, whatever happened before; it takes less than a second."""

SCRATCH_NAME = "Scratch of codex-checkpoints"
"""The name in lists of sessions, should a fork be left over."""

_VERSION = re.compile(r"/(\d+\.\d+\.\d+\S*)")
_DATABASE = re.compile(r"state_\d+\.sqlite")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def find(search_path: str, name: str = "codex") -> str | None:
    """Return a program on a search path, never one in the current folder."""
    for folder in search_path.split(os.pathsep):
        if os.path.isabs(folder) and (found := shutil.which(os.path.join(folder, name))):
            return found
    return None


LAUNCHER = "CODEX_CHECKPOINTS_LAUNCHER"
"""The variable that names a launcher whose path outlives an update of the editor's extension."""


def this_program(
    interpreter: str, package_folder: str, stable: str | None = None
) -> tuple[str, ...]:
    """Return the words that start this very program from any folder; by the `stable` launcher.

    `-P`: Codex starts us in the folder of a session, and a module there must not pass for ours.
    """
    launcher = os.path.join(os.path.dirname(os.path.dirname(package_folder)), "launch.py")
    if os.path.isfile(launcher):
        if stable is not None and os.path.isabs(stable) and os.path.isfile(stable):
            launcher = stable
        return (interpreter, "-I", "-S", "-X", "utf8", "-u", launcher)
    return (interpreter, "-P", "-X", "utf8", "-m", "codex_checkpoints")


@frozen
class SeenHook:
    """A hook as Codex sees it; `trust` is `trusted`, `untrusted`, `modified` or `managed`."""

    event: str
    command: str
    trust: str
    enabled: bool


@frozen
class CodexReport:
    """The answer of Codex; `hooks` is None if it does not support hooks."""

    version: str | None
    hooks: tuple[SeenHook, ...] | None
    warnings: tuple[str, ...]


def ask(codex: str, codex_home: str, environment: Mapping[str, str]) -> CodexReport:
    """Return the version of Codex and its hooks in a home.  Raises `AskingFailed`."""
    patience = Deadline(SECONDS)
    with app_server(codex, codex_home, environment, patience) as (server, agent):
        version = _VERSION.search(agent)
        try:
            listed = server.call("hooks/list", {"cwds": [codex_home]})
        except RequestDeclined:  # it does not know this request
            listed = None
    folders = [] if listed is None else [*map(object_of, list_of(listed.get("data")))]
    return CodexReport(
        None if version is None else version[1],
        None if listed is None else tuple(hook for each in folders for hook in _hooks(each)),
        tuple(str(text) for each in folders for text in list_of(each.get("warnings"))),
    )


def _hooks(folder: Message) -> Iterator[SeenHook]:
    for hook in map(object_of, list_of(folder.get("hooks"))):
        name = str(hook.get("eventName"))
        yield SeenHook(
            name[:1].upper() + name[1:],
            str(hook.get("command", "")),
            str(hook.get("trustStatus")),
            hook.get("enabled") is not False,
        )


@frozen
class CodexArchive:
    """The archive of one home, as Codex keeps it."""

    _home: str
    _environment: Mapping[str, str]

    def is_kept(self) -> bool:
        """Return whether Codex keeps a database of threads in this home."""
        try:
            return any(map(_DATABASE.fullmatch, os.listdir(self._home)))
        except OSError:
            return False

    def move(
        self,
        thread_id: str,
        cancelled: Callable[[], bool],
        begin: Callable[[], None],
        *,
        archive: bool,
    ) -> None:
        """Let Codex archive a thread, or unarchive it; call `begin` before anything changes.

        Raises `AskingFailed`: `codex_not_found`, `timed_out`, `codex_failed`, and `cancelled` if
        nobody wants it any more before it has begun; and the error of `begin`.
        """
        codex = find(self._environment.get("PATH", ""))
        if codex is None:
            raise AskingFailed("codex_not_found", "no Codex CLI is on the PATH")
        starting = Deadline(SECONDS_TO_MOVE, cancelled)
        with app_server(codex, self._home, self._environment, starting) as (server, _):
            begin()
            method = "thread/archive" if archive else "thread/unarchive"
            server.call(method, {"threadId": thread_id}, Deadline(SECONDS_TO_MOVE))


@frozen
class Excerpt:
    """A part of a history for a new thread, if the whole does not fit into the window."""

    items: Sequence[Message]
    cwd: str | None
    model: str | None
    provider: str | None


def compacted(
    codex: str,
    codex_home: str,
    what: str | Excerpt,
    environment: Mapping[str, str],
    patience: Deadline,
) -> str:
    """Return the id of an archived fork of a thread, or of an excerpt, that Codex has compacted.

    Raises `AskingFailed`, and `RequestDeclined` with the reason if Codex refused.
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
            server.call("thread/name/set", {"threadId": scratch, "name": SCRATCH_NAME})
            server.call("thread/compact/start", {"threadId": scratch})
            _wait(server, scratch)
        finally:
            _put_away(server, scratch)
    return scratch


def _begun(server: AppServer, what: str | Excerpt) -> str:
    if isinstance(what, str):
        begun = _marked(server, "thread/fork", {"threadId": what, "excludeTurns": True})
    else:
        known = {"cwd": what.cwd, "model": what.model, "modelProvider": what.provider}
        given = {name: value for name, value in known.items() if value is not None}
        begun = _marked(server, "thread/start", given)
    return text_of(object_of(begun.get("thread")).get("id")) or ""


def _marked(server: AppServer, method: str, params: Message) -> Message:
    """Start a thread with our source in its head; not every Codex accepts one."""
    try:
        return server.call(method, {**params, "threadSource": SCRATCH})
    except RequestDeclined:
        return server.call(method, params)


def _wait(server: AppServer, thread_id: str) -> None:
    happened = False
    for method, params in server.news():
        if params.get("threadId") != thread_id:
            continue
        if method == "item/completed":
            item = object_of(params.get("item"))
            happened = happened or item.get("type") == "contextCompaction"
        elif method == "turn/completed":
            turn = object_of(params.get("turn"))
            if turn.get("status") != "completed":
                raise RequestDeclined(text_of(object_of(turn.get("error")).get("message")) or "")
            if not happened:
                raise RequestDeclined("")  # a hook of the user's stopped it
            return


def _put_away(server: AppServer, thread_id: str) -> None:
    try:
        patience = Deadline(SECONDS_TO_ARCHIVE)
        server.call("thread/archive", {"threadId": thread_id}, patience)
    except AskingFailed as error:
        logger.warning("%s: the scratch fork %s is not archived", error.code, thread_id)
