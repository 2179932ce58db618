"""The files that a restore names, as they are on the disk now.

Which files and lines those are is found by `plan`; what changed since, by `core.restore`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from codex_checkpoints.core.checkpoint.records import UNKNOWN_HASH
from codex_checkpoints.core.checkpoint.redaction import MARK, secrets
from codex_checkpoints.core.checkpoint.text import SCANNED
from codex_checkpoints.core.restore.carried import Pinned, Unseen
from codex_checkpoints.core.restore.gathering import Span
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.core.restore.references import chunk_id
from codex_checkpoints.core.restore.sealing import digest_of
from codex_checkpoints.workspace import Workspace

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def hashes_now(workspace: Workspace, base: str | None, then: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of now of the files that a marker knew."""
    now = workspace.hashes(base, then)
    return {uri: now.get(uri, UNKNOWN_HASH) for uri in then}


def chunks_now(workspace: Workspace, base: str | None, spans: Iterable[Span]) -> dict[str, str]:
    """Return the hashes of lines as they are now, by the id of their chunk (AGN-36)."""
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
    """Return what is pinned, with its text and hash, or why there is none to be shown."""
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
    """Return why a file cannot be read: whoever may not look cannot say that it is gone."""
    if workspace.missing(base, [uri]):
        return "missing"
    # One above the limit is known by its size and time.
    return "bound" if workspace.hashes(base, [uri]) else "unreadable"


def _text(content: bytes, start: int, end: int) -> str:
    """Return the text of some lines, without what belongs to a secret that the file tells."""
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
    """Return some lines of a file, from 1; None where it has none of them."""
    if content is None:
        return None
    found = _LINE.findall(content)[start - 1 : end]
    return b"".join(found) if found else None
