"""What a plan of a restore looks up: the files as they are now, and the work before the session."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codex_checkpoints.core.audit import digest_of
from codex_checkpoints.core.checkpoint.text import MARK, SCANNED, secrets
from codex_checkpoints.core.compaction.records import Range, began_session
from codex_checkpoints.core.restore.markers import (
    Pin,
)
from codex_checkpoints.core.restore.pack import (
    Pinned,
    Unseen,
)
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.restore.references import (
    NOTHING,
    Fallback,
    ModeChange,
    References,
    Span,
    Trace,
    chunk_id,
    in_order,
    remembered,
)
from codex_checkpoints.service.kept import (
    ImportRecords,
    RestoreRecords,
    storing_compaction,
)
from codex_checkpoints.service.reading.session_file import (
    fingerprint,
)
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.storage.workspace import Workspace
from codex_checkpoints.values import frozen

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def chunks_now(workspace: Workspace, base: str | None, spans: Iterable[Span]) -> dict[str, str]:
    """Return the present hashes of lines, by the id of their chunk (AGN-36)."""
    found: dict[str, str] = {}
    contents: dict[str, bytes | None] = {}
    for span in spans:
        if span.uri not in contents:
            contents[span.uri] = workspace.content(base, span.uri)
        part = _lines(contents[span.uri], span.start, span.end)
        if part is not None:
            found[chunk_id(span)] = digest_of(part)
    return found


def pinned_now(workspace: Workspace, base: str | None, pin: Pin) -> Pinned:
    """Return a pin with its text and hash, or the reason why it has none."""
    content = workspace.content(base, pin.uri)
    if pin.start is not None and pin.end is not None:
        part = _lines(content, pin.start, pin.end)
        found = None if part is None else digest_of(part)
        text = None if content is None else _text(content, pin.start, pin.end)
    else:
        part, found = content, workspace.hashes(base, [pin.uri]).get(pin.uri)
        text = None if content is None else content.decode(errors="replace")
    if part is not None:
        return Pinned(pin.uri, pin.start, pin.end, found, text)
    why = "no_lines" if content is not None else _unseen(workspace, base, pin.uri)
    return Pinned(pin.uri, pin.start, pin.end, found, None, why)


def _unseen(workspace: Workspace, base: str | None, uri: str) -> Unseen:
    if workspace.missing(base, [uri]):
        return "missing"
    # One above the limit is known by its size and time.
    return "bound" if workspace.hashes(base, [uri]) else "unreadable"


def _text(content: bytes, start: int, end: int) -> str:
    """Return the text of some lines, without the parts of secrets in the file."""
    lines = _LINE.findall(content)
    cuts = (lines[: start - 1], lines[start - 1 : end], lines[end:])
    before, text, behind = (b"".join(each).decode(errors="replace") for each in cuts)
    before, behind = before[-SCANNED:], behind[:SCANNED]
    parts: list[str] = []
    first, last = len(before), len(before) + len(text)
    at = first
    for begin, stop in secrets(before + text + behind):
        if begin < last and first < stop:
            parts += [text[at - first : max(begin, first) - first], MARK]
            at = min(stop, last)
    return "".join(parts) + text[at - first :]


def _lines(content: bytes | None, start: int, end: int) -> bytes | None:
    if content is None:
        return None
    found = _LINE.findall(content)[start - 1 : end]
    return b"".join(found) if found else None


_LONGEST = 64
"""How many compactions one behind the other are followed: each costs reading a whole session."""

UNKNOWN = Fallback("earlier_unknown")


@frozen
class Earlier:
    """Files and modes before the own lines of a session; `gaps` tell what is not known."""

    references: References = NOTHING
    modes: tuple[ModeChange, ...] = ()
    gaps: tuple[Fallback, ...] = ()


def earlier_work(sessions: Sessions, row: Row, trace: Trace, most: int = _LONGEST) -> Earlier:
    """Return the work before the own lines of a session, which `trace` has read.

    Refuses `storage_error`; raises `UnreadableSource`.
    """
    found = _above(sessions, row, trace) if most else Earlier(gaps=(UNKNOWN,))
    if isinstance(found, Earlier):
        return found
    before, traces = earlier_work(sessions, *found, most - 1), found[1].traces()
    modes = in_order(before.modes, traces.modes)
    return Earlier(remembered(traces, before.references), modes, before.gaps)


def _above(sessions: Sessions, row: Row, trace: Trace) -> Earlier | tuple[Row, Trace]:
    """Return what a record of a restore or import holds, or the source of a compaction."""
    seed, restores = trace.replay.state.seed, RestoreRecords(sessions.records)
    made = restores.made(row.session_id)
    if made is not None:
        return _carried(made, None if seed is None else seed.seq)
    if seed is None:
        return Earlier()
    root = [row, *sessions.catalogue.chains.below(row)][-1].session_id
    made = restores.made(root)
    if made is not None:
        return _carried(made, seed.seq)
    with storing_compaction(root):
        began = began_session(sessions.compactions.of(root), root)
    if began is not None:
        return _compacted(sessions, began.source) or Earlier(gaps=(UNKNOWN,))
    arrived = ImportRecords(sessions.records).made(root)
    return Earlier(modes=() if arrived is None else arrived.pack.modes, gaps=(UNKNOWN,))


def _carried(made: Restore, seed: int | None) -> Earlier:
    modes = tuple(each for each in made.modes if seed is not None and each.seq <= seed)
    return Earlier(made.references, modes, tuple(gap for gap in made.fallbacks if gap == UNKNOWN))


def _compacted(sessions: Sessions, source: Range) -> tuple[Row, Trace] | None:
    """Read the source of a compaction up to its end; None where it is gone or changed."""
    catalogue = sessions.catalogue
    newest = catalogue.current().get(source.session_id)
    others = (row for row in catalogue.files_of(source.session_id) if row != newest)
    for row in (*filter(None, [newest]), *others):
        try:
            found = fingerprint(catalogue.reader, row.path, source.bytes_before)
        except UnreadableSource:
            continue
        if found == (source.prefix, source.bytes_before):
            trace = Trace(last=source.to_seq)
            catalogue.read_with(trace.replay, row)
            return row, trace
    return None
