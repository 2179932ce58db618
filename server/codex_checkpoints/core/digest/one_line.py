"""Writes external texts as one line each: redacted, and cut at the end of a sentence."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.truncate import GAP
from codex_checkpoints.core.fields import CONTROLS
from codex_checkpoints.core.record_place import RecordPlace

_BREAKS: Final = re.compile(
    r"(?:(?<![ \t])[ \t]++)?(?:\r\n|[\n\r\v\f\x85\u2028\u2029])[\s\x00-\x1f]*"
)
_CONTROLS: Final = re.compile(f"[{CONTROLS}]+")
_BUT_LF: Final = re.compile(rf"(?:(?!\n)[{CONTROLS}])+")
ENDS: Final = (re.compile(r"\\n|[.!?;:](?= |\\n)|[\u3002\uff01\uff1f]"), re.compile(" "))
"""Ends of sentences and lines, or else of words, in a one-line text."""

_LONE: Final = re.compile(r"[\ud800-\udfff]")

BREAK: Final = r"\n"
"""Marks a line break of the quoted text, as in JSON."""


def inline(text: str, limit: int) -> str:
    """Return a quoted text as one line: redacted, with `BREAK` for line breaks, its middle cut."""
    return cut(quoted(text), limit)


def quoted(text: str) -> str:
    """Return a text as one line, redacted."""
    return one_line(redact(plain(text)).strip())


def cut(clean: str, limit: int) -> str:
    """Return a one-line text, with its middle cut out if it is too long."""
    return clean if len(clean) <= limit else GAP.join(ends_within(clean, limit))


def ends_within(clean: str, limit: int) -> tuple[str, str]:
    """Return both ends of a text that is too long, cut at a line, a sentence or a word."""
    half = (limit - len(GAP)) // 2
    tail = clean[-half:]
    for ends in ENDS:
        if found := ends.search(tail, 0, half // 2):
            tail = tail[found.end() :]
            break
    head = clean[: 2 * half - len(tail)]
    for ends in ENDS:
        if found := deque(ends.finditer(head, len(head) // 2), 1):
            head = head[: found[0].end()]
            break
    return head.removesuffix(BREAK).rstrip(), tail.lstrip()


def anchor(where: RecordPlace) -> str:
    """Return the anchor of a record: `t3 #120`, or `#120` for an earlier session."""
    return f"#{where.seq}" if where.turn is None else f"t{where.turn} #{where.seq}"


def one_line(text: str) -> str:
    """Return a text with `BREAK` for its line breaks and without control characters."""
    return _LONE.sub("\ufffd", _CONTROLS.sub(" ", _BREAKS.sub(lambda _: BREAK, text)))


def label_line(label: str, limit: int) -> str:
    """Return the first line of a label, redacted, cut at its end."""
    clean = one_line(redact(label).split("\n")[0].strip())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def clean_rows(text: str) -> str:
    """Return a text that may be quoted line by line."""
    clean = redact(plain(text))
    # Most texts have no other control than LF, which is found many times faster.
    if clean.replace("\n", "").isprintable():
        return clean
    return _LONE.sub("\ufffd", _BUT_LF.sub(" ", clean))
