"""Connects Codex: reports the connection, previews a change, writes it, and undoes it.

A person must trust hooks in Codex itself.  `codex.config` and `codex.hooks` edit the two files.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Literal

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.codex import config, entries, file_edit, hooks
from codex_checkpoints.codex.entries import CannotEdit, Entries
from codex_checkpoints.codex.file_edit import Snapshot
from codex_checkpoints.core.fields import Json, digest_of, is_list, object_of, text_of
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.service.connect import status
from codex_checkpoints.service.connect.status import (
    CONFIG,
    HOOKS,
    Connection,
    Done,
    FoundCodex,
)
from codex_checkpoints.service.operation import atomic_operation, close, operation_of
from codex_checkpoints.service.refusal import Refusal, keeping
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.records import Records

ConnectRequest = Literal["connect", "remove"]

EVENTS: Mapping[ConnectRequest, str] = {"connect": "CodexConnected", "remove": "CodexDisconnected"}
"""The event of each change that was written."""


@frozen
class Change:
    """The new bytes of one file; `after` is None if the file is removed."""

    before: Snapshot
    after: bytes | None

    @property
    def path(self) -> str:
        """Return the path of the file."""
        return self.before.path

    @property
    def line(self) -> dict[str, object]:
        """Return the facts that show later whether the file was written."""
        digest = None if self.after is None else digest_of(self.after)
        return {"name": os.path.basename(self.path), "digest": digest}

    def write(self) -> None:
        """Write the file, or remove it."""
        if self.after is None:
            file_edit.remove(self.before)
        else:
            file_edit.replace(self.before, self.after)

    def done(self, backup: str | None = None) -> Done:
        """Return the report of it, without unchanged lines, which may contain keys."""
        before, after = self.before.data, self.after
        old, new = (
            (data or b"").decode(errors="replace").removeprefix("\ufeff").splitlines()
            for data in (before, after)
        )
        diff = difflib.unified_diff(old, new, self.path, self.path, lineterm="", n=0)
        action = "create" if before is None else "delete" if after is None else "edit"
        return Done(self.path, action, "\n".join(diff), backup)


@frozen
class Connector:
    """Codex's configuration in one home, and our entries for it."""

    codex_home: str
    state_dir: str
    wanted: Entries
    environment: Mapping[str, str]
    settings: Settings = Factory(Settings)
    now: Callable[[], str] = stamps.now
    new_id: Callable[[], str] = stamps.new_id

    def status(self) -> Connection:
        """Report for each door whether it is configured, trusted and in use."""
        return self._look(status.ask_codex(self.codex_home, self.environment))

    def inspect(self) -> Connection:
        """Report without starting Codex."""
        return self._look(status.find_codex(self.environment))

    def preview(self, request: ConnectRequest) -> Connection:
        """Return the planned writes.  Raises `Refusal`."""
        changes = tuple(each.done() for each in self._changes(request))
        return evolve(self.inspect(), changes=changes)

    def carry_out(self, request: ConnectRequest) -> Connection:
        """Write the change, and check the connection again.  Raises `Refusal`; each file is atomic.

        The audit names each file that was written, also after a crash between two of them.
        """
        changes = self._changes(request)
        if not changes:
            return self.inspect()
        operation = operation_of(self.settings, self.new_id(), None, None)
        event = event_of(EVENTS[request], self.now(), operation, {})
        records, files = Records(self.state_dir), [each.line for each in changes]
        work = ConnectWork(records, self.codex_home, event, files)
        with (
            keeping("record of the connection", None),
            atomic_operation(records, operation.operation_id, work) as prepare,
        ):
            prepare({"connect": event, "files": files})
            done = (put_in if request == "connect" else take_out)(changes)
        return evolve(self.inspect(), changes=done, written=True)

    def _look(self, codex: FoundCodex) -> Connection:
        return status.look(self.codex_home, self.state_dir, self.wanted, codex)

    def _changes(self, request: ConnectRequest) -> tuple[Change, ...]:
        if request == "connect":
            return plan(self.codex_home, self.wanted)
        return removal(self.codex_home)


@define
class ConnectWork:
    """A change of the connection, from its first line to its event; `operation.PendingOperation`.

    It has the name of each file and the digest of its new bytes, None for a removal.
    """

    _records: Records
    _codex_home: str
    _event: Json
    _files: Sequence[Json]

    def is_published(self) -> bool:
        """Return whether one of the files was written."""
        return any(map(self._is_written, self._files))

    def record(self) -> None:
        """Write the event, with the names of the files that were written."""
        self.roll_back("")
        written = [each["name"] for each in self._files if self._is_written(each)]
        close(self._records, {**self._event, "files": written}, again=True)

    def roll_back(self, code: str) -> bool:
        """Remove the temporary files that a killed process left."""
        del code
        for each in self._files:
            file_edit.clear_leftovers(self._path(each))
        return True

    def _is_written(self, file: Json) -> bool:
        try:
            data = file_edit.read(self._path(file)).data
        except (OSError, CannotEdit):
            return False
        return (None if data is None else digest_of(data)) == file.get("digest")

    def _path(self, file: Json) -> str:
        return os.path.join(self._codex_home, os.path.basename(str(file["name"])))


def reopened(records: Records, codex_home: str, written: Json) -> ConnectWork:
    """Return the change that a process wrote down."""
    event, files = object_of(written.get("connect")), written.get("files")
    read = [object_of(each) for each in files] if is_list(files) else []
    named = [each for each in read if text_of(each.get("name"))]
    return ConnectWork(records, codex_home, event, named)


def plan(codex_home: str, wanted: Entries) -> tuple[Change, ...]:
    """Return the changes that make Codex call us; none if it does already.

    The hooks go into `config.toml`, unless a person has hooks only in `hooks.json`: Codex reads
    both files, and warns if both have hooks.  Raises `Refusal`.
    """
    toml, json = _open(codex_home)
    with _explained(toml.path):
        here = entries.without_ours(config.found_in(toml.text or "").groups)
    there = {} if json.text is None else entries.without_ours(hooks.groups_in(json.text))
    none = evolve(wanted, hooks=())
    in_json = any(there.values()) and not any(here.values())
    in_toml, in_json_file = (none, wanted) if in_json else (wanted, none)
    return (
        *json.edited(lambda text: None if text is None else hooks.with_hooks(text, in_json_file)),
        *toml.edited(lambda text: config.with_entries(text, in_toml)),
    )


def removal(codex_home: str) -> tuple[Change, ...]:
    """Return the changes that remove our entries.  Raises `Refusal`."""
    toml, json = _open(codex_home)
    return (
        *json.edited(lambda text: None if text is None else hooks.without_hooks(text)),
        *toml.edited(lambda text: None if text is None else config.without_entries(text)),
    )


@frozen
class _File:
    """A file of Codex and its text, None if it is missing or cannot be edited."""

    before: Snapshot
    text: str | None

    @property
    def path(self) -> str:
        return self.before.path

    def edited(self, edit: Callable[[str | None], str | None]) -> Iterator[Change]:
        """Yield the change that an edit makes, if it makes one and the file may be written."""
        with _explained(self.path):
            after = edit(self.text)
            if after != self.text:
                file_edit.check_writable(self.before)
                yield Change(self.before, None if after is None else after.encode())


def _open(codex_home: str) -> tuple[_File, _File]:
    """Read `config.toml` and `hooks.json`; one that Codex cannot read is left alone."""
    if not os.path.isdir(codex_home):
        message = f"there is no Codex home at {codex_home}; run Codex once, or name it"
        raise Refusal("codex_not_found", message, {"codexHome": codex_home})
    paths = [os.path.join(codex_home, name) for name in (CONFIG, HOOKS)]
    with _explained(paths[0]):
        toml = file_edit.read(paths[0])
        text = None if toml.data is None else toml.data.decode()
    with _explained(paths[1]):
        json = file_edit.read(paths[1])
        return _File(toml, text), _File(json, _hooks_of(json.data))


def _hooks_of(data: bytes | None) -> str | None:
    """Return the text of hooks that Codex can read; raises for a broken one that may have ours."""
    try:
        text = None if data is None else data.decode()
        if text is not None:
            hooks.groups_in(text)
    except (CannotEdit, UnicodeDecodeError):
        if data and any(word in data for word in (b"codex_checkpoints", b"launch.py")):
            raise
        return None
    return text


def put_in(changes: Sequence[Change]) -> tuple[Done, ...]:
    """Write the changes of `plan`, and keep the old bytes beside each file.  Raises `Refusal`."""
    backups: list[str | None] = []
    for change in changes:
        with _explained(change.path):
            backups.append(file_edit.keep(change.before))
    _write(changes)
    return tuple(change.done(kept) for change, kept in zip(changes, backups, strict=True))


def take_out(changes: Sequence[Change]) -> tuple[Done, ...]:
    """Write the changes of `removal`; backups that equal their file go.  Raises `Refusal`."""
    _write(changes)
    for change in changes:
        file_edit.forget_copies(change.path)
    return tuple(change.done() for change in changes)


def _write(changes: Sequence[Change]) -> None:
    """Write all changes.  Raises `Refusal`, which names the files written already."""
    written: list[str] = []
    try:
        for change in changes:
            with _explained(change.path):
                change.write()
            written.append(change.path)
    except Refusal as refusal:
        if not written:
            raise
        message = f"{refusal.message}; {', '.join(written)} is changed already"
        raise Refusal(refusal.code, message, {**refusal.facts, "written": written}) from refusal


@contextlib.contextmanager
def _explained(path: str) -> Generator[None]:
    """Turn a failed edit into a refusal that names the file."""
    try:
        yield
    except CannotEdit as error:
        code, reason = error.code, str(error)
    except UnicodeDecodeError:
        code, reason = "unreadable_source", "it is not UTF-8"
    except UnicodeEncodeError:
        code, reason = "conflict", "the path of this program or one of our values is not UTF-8"
    except OSError as error:
        code, reason = "storage_error", error.strerror or str(error)
    else:
        return
    raise Refusal(code, f"{path} is left as it is: {reason}", {"path": path, "reason": reason})
