"""Files from window to window: which were changed, which were read again although nothing changed.

Rules for a read, which is one call that reads one file and does not fail:

1. It is a *re-read of an unchanged file* where what it showed was met in an earlier window.
2. Where the same command has read the file before, what it printed decides: the same output is the
   same content, whatever the session did meanwhile.  Another output is another content, met now,
   unless the session recorded a change in between.
3. Otherwise the session's own record decides: the content is that of its last patch, else that of
   the first read.  A file that a command changed, or a person, is taken for unchanged until rule 2
   shows better.
4. A file goes round in circles when it was read again unchanged in `LOOP_WINDOWS` windows in a row;
   it takes `LOOP_FILES` of them for a warning.

What is kept is bounded: of too many files those that nobody has met for longest are forgotten.
"""

from __future__ import annotations

import hashlib

from attrs import Factory

from codex_checkpoints.core.losses.records import MAX_REREADS, Reread
from codex_checkpoints.core.rollout.items import Action
from codex_checkpoints.values import define, frozen

LOOP_WINDOWS = 2
"""How many windows in a row must read a file again unchanged."""

LOOP_FILES = 2
"""How many such files make a loop."""

MAX_FILES = 1 << 14
"""How many files are remembered."""

MAX_CHANGED = 256
"""How many changed files of a window are looked up in a replacement, the newest."""

_BEFORE = -1
"""The window before the first."""

_OUTPUTS = 4
"""Of how many commands it is remembered what they printed of a file, the newest."""


@frozen
class Changed:
    """The newest change of a file in a window."""

    change: Action
    ref: str | None
    seq: int


@frozen
class _Output:
    """What a command printed of a file: its digest, of which content, known since which window."""

    digest: bytes
    content: int
    since: int


@define
class _File:
    """A file: since which window it holds what it holds, and in which it was read again last.

    `content` counts what it has held; `row` the windows in a row that read it again.
    """

    since: int
    content: int = 0
    again_in: int = _BEFORE
    row: int = 0
    outputs: dict[bytes, _Output] = Factory(dict[bytes, _Output])

    def renew(self, window: int) -> None:
        """Note that it holds something else since a window."""
        self.since, self.content, self.row = window, self.content + 1, 0


@define
class Files:
    """What a session knows of files, and what happened to them in the window at hand."""

    window: int = 0
    changes: int = 0
    """How many changes the session has recorded."""
    changed: dict[str, Changed] = Factory(dict[str, Changed])
    forgotten: int = 0
    """How many changed files of this window are no longer known."""
    reads: int = 0
    rereads: dict[str, Reread] = Factory(dict[str, Reread])
    circling: dict[str, None] = Factory(dict[str, None])
    _files: dict[str, _File] = Factory(dict[str, _File])

    def know(self, uri: str) -> None:
        """Take a file that the session began with: it was met before the first window."""
        self._files.setdefault(uri, _File(_BEFORE))

    def change(self, uri: str, change: Changed) -> None:
        """Take a change that the session itself recorded."""
        self.changes += 1
        self.changed.pop(uri, None)
        self.changed[uri] = change
        if len(self.changed) > MAX_CHANGED:
            del self.changed[next(iter(self.changed))]
            self.forgotten += 1
        self._met(uri).renew(self.window)

    def read(self, uri: str, command: str, printed: str | None, ref: str | None, seq: int) -> bool:
        """Take a read; return whether it showed again what an earlier window had met (rule 1)."""
        self.reads += 1
        file = self._met(uri)
        since = file.since if printed is None else self._since(file, command, printed)
        if since == self.window:
            return False
        if file.again_in != self.window:
            file.row = file.row + 1 if file.again_in == self.window - 1 else 1
            file.again_in = self.window
        if file.row >= LOOP_WINDOWS:
            self.circling[uri] = None
        before = self.rereads.get(uri)
        self.rereads[uri] = Reread(uri, 1 if before is None else before.times + 1, ref, seq)
        return True

    def open_window(self) -> None:
        """Begin the next window."""
        self.window += 1
        self.changed, self.forgotten = {}, 0
        self.reads, self.rereads, self.circling = 0, {}, {}

    def most_read(self) -> tuple[Reread, ...]:
        """Return the files that this window read again, the most often first, then the newest."""
        order = sorted(self.rereads.values(), key=lambda each: (-each.times, -each.seq, each.uri))
        return tuple(order[:MAX_REREADS])

    @property
    def loop(self) -> tuple[str, ...]:
        """Return the files that go round in circles, if there are enough for a warning."""
        return tuple(self.circling) if len(self.circling) >= LOOP_FILES else ()

    def _met(self, uri: str) -> _File:
        """Return a file as the one that was met last; of too many the oldest is forgotten."""
        file = self._files.pop(uri, None) or _File(self.window)
        self._files[uri] = file
        if len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        return file

    def _since(self, file: _File, command: str, printed: str) -> int:
        """Return since which window the content that was printed is known (rules 2 and 3)."""
        key, digest = digest_of(command), digest_of(printed)
        known = file.outputs.pop(key, None)
        same = known is not None and known.digest == digest
        if known is not None and not same and known.content == file.content:
            file.renew(self.window)
        since = known.since if known is not None and same else file.since
        file.outputs[key] = _Output(digest, file.content, since)
        if len(file.outputs) > _OUTPUTS:
            del file.outputs[next(iter(file.outputs))]
        return since


def digest_of(text: str) -> bytes:
    """Return by what a text is known again."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()
