"""Connect Codex with us: what is to be written into its configuration, and taken out again.

Nothing is ever trusted on a person's behalf; Codex itself asks for that.  How the two files are
edited is known to `codex`; whether a door is configured and in use, to `connection`.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Generator, Sequence

from attrs import evolve

from codex_checkpoints.codex import config_file, file_edit, hooks_file
from codex_checkpoints.codex.entries import CannotEdit, Entries, Unreadable
from codex_checkpoints.codex.file_edit import Changed, NotWritable, Snapshot, TooLong
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.values import frozen

CONFIG, HOOKS = "config.toml", "hooks.json"


@frozen
class Change:
    """What one file is to say; `after` is None where it goes, since nothing else was ever in it."""

    before: Snapshot
    after: bytes | None

    @property
    def path(self) -> str:
        """Return which file."""
        return self.before.path

    @property
    def action(self) -> str:
        """Return `create`, `edit` or `delete`."""
        if self.before.data is None:
            return "create"
        return "delete" if self.after is None else "edit"

    @property
    def diff(self) -> str:
        """Return what comes and goes, and nothing of what stays: it may hold somebody's keys."""
        old, new = (
            (data or b"").decode(errors="replace").removeprefix("\ufeff").splitlines()
            for data in (self.before.data, self.after)
        )
        return "\n".join(difflib.unified_diff(old, new, self.path, self.path, lineterm="", n=0))


@frozen
class Done:
    """A file of Codex's that was changed, or would be; `action` is `create`, `edit` or `delete`.

    `diff` shows what comes and goes, and nothing of what stays.
    """

    path: str
    action: str
    diff: str
    backup: str | None


def plan(codex_home: str, wanted: Entries) -> tuple[Change, ...]:
    """Return what has to change for Codex to call us; nothing where it does already.

    The hooks go into `config.toml`, except where a person keeps theirs in `hooks.json` alone: Codex
    reads both, and warns where both have some.  What a person wrote to call us stays as it is, and
    nothing is put beside it that would be called as well.  Raises `Refusal`.
    """
    config, hooks = _open(codex_home)
    with _explained(config.path):
        text = _text(config)
        found = config_file.found_in(text or "")
    hooks_text = _hooks_text(hooks)
    wanted = _lacking(wanted, found, hooks_text)
    aside = hooks_text is not None and _belong_into(hooks_text, found)
    changes: list[Change] = []
    with _explained(hooks.path):
        if hooks_text is not None:
            there = wanted if aside else evolve(wanted, hooks=())
            changes += _change(hooks, hooks_text, hooks_file.with_hooks(hooks_text, there))
    with _explained(config.path):
        here = evolve(wanted, hooks=()) if aside else wanted
        changes += _change(config, text, config_file.with_entries(text, here))
    return _writable(changes)


def removal(codex_home: str) -> tuple[Change, ...]:
    """Return what has to change for nothing of ours to be left.  Raises `Refusal`."""
    config, hooks = _open(codex_home)
    changes: list[Change] = []
    hooks_text = _hooks_text(hooks)
    with _explained(hooks.path):
        if hooks_text is not None:
            changes += _change(hooks, hooks_text, hooks_file.without_hooks(hooks_text))
    with _explained(config.path):
        text = _text(config)
        if text is not None:
            changes += _change(config, text, config_file.without_entries(text))
    return _writable(changes)


def put_in(changes: Sequence[Change]) -> tuple[Done, ...]:
    """Write the changes of `plan`, with the old bytes kept beside each file.  Raises `Refusal`."""
    done: list[Done] = []
    for change in changes:
        with _explained(change.path):
            backup = file_edit.keep(change.before)
            _write(change)
        done.append(Done(change.path, change.action, change.diff, backup))
    return tuple(done)


def take_out(changes: Sequence[Change]) -> tuple[Done, ...]:
    """Write the changes of `removal`; copies that say what their file says again go as well.

    Raises `Refusal`.
    """
    for change in changes:
        with _explained(change.path):
            _write(change)
        file_edit.forget_copies(change.path)
    return tuple(Done(change.path, change.action, change.diff, None) for change in changes)


def _write(change: Change) -> None:
    if change.after is None:
        file_edit.remove(change.before)
    else:
        file_edit.replace(change.before, change.after)


def _lacking(wanted: Entries, config: config_file.Found, hooks_text: str | None) -> Entries:
    """Leave out what a person has written by hand; what we have put in already stays."""
    ours, by_hand = {*config.hooks}, {*config.by_hand}
    if hooks_text is not None:
        ours |= {*hooks_file.hooks_in(hooks_text)}
        by_hand |= {*hooks_file.by_hand_in(hooks_text)}
    return evolve(
        wanted,
        hooks=tuple(hook for hook in wanted.hooks if hook.event not in by_hand - ours),
        has_server=config.server is not None or not config.servers_by_hand,
    )


def _belong_into(hooks_text: str, config: config_file.Found) -> bool:
    """Say whether our hooks belong into `hooks.json`: where they are, they stay."""
    if hooks_file.hooks_in(hooks_text):
        return True
    return hooks_file.has_foreign_hooks(hooks_text) and not (config.hooks or config.foreign_hooks)


def _open(codex_home: str) -> tuple[Snapshot, Snapshot]:
    if not os.path.isdir(codex_home):
        message = f"there is no Codex home at {codex_home}; run Codex once, or name it"
        raise Refusal("codex_not_found", message, {"codexHome": codex_home})
    paths = [os.path.join(codex_home, name) for name in (CONFIG, HOOKS)]
    read: list[Snapshot] = []
    for path in paths:
        with _explained(path):
            read.append(file_edit.read(path))
    return read[0], read[1]


def _text(file: Snapshot) -> str | None:
    return None if file.data is None else file.data.decode()


def _hooks_text(file: Snapshot) -> str | None:
    """Return the text of `hooks.json`; None where there is none, or none that Codex could read."""
    if file.data is None:
        return None
    try:
        with _explained(file.path):
            text = file.data.decode()
            hooks_file.hooks_in(text)
    except Refusal:
        if any(word in file.data for word in (b"codex_checkpoints", b"launch.py")):
            raise
        return None
    return text


def _change(file: Snapshot, old: str | None, new: str | None) -> list[Change]:
    return [] if new == old else [Change(file, None if new is None else new.encode())]


def _writable(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Look before the first file is touched: half a connection helps nobody."""
    for change in changes:
        with _explained(change.path):
            file_edit.check_writable(change.before)
    return tuple(changes)


@contextlib.contextmanager
def _explained(path: str) -> Generator[None]:
    """Turn what stands in the way of an edit into a refusal that names the file."""
    try:
        yield
    except Unreadable as error:
        code, reason = "unreadable_source", str(error)
    except UnicodeDecodeError:
        code, reason = "unreadable_source", "it is not UTF-8"
    except UnicodeEncodeError:
        code, reason = "conflict", "the path of this program is no UTF-8"
    except (CannotEdit, Changed) as error:
        code, reason = "conflict", str(error)
    except TooLong as error:
        code, reason = "limit_exceeded", str(error)
    except NotWritable as error:
        code, reason = "storage_error", str(error)
    except OSError as error:
        code, reason = "storage_error", error.strerror or str(error)
    else:
        return
    raise Refusal(code, f"{path} is left as it is: {reason}", {"path": path, "reason": reason})
