"""Make the text of values short and plain: one line, no control characters, cut to a limit.

The rules are "Text of values" in interfaces.md, DSC-51 and DSC-52. Which value has which limit is
left to the caps; file URIs, which are never cut, to `core/rollout/paths.py`; secrets to
`redaction.py`.
"""

import re

from codex_checkpoints.core.checkpoint.redaction import MARK, redact
from codex_checkpoints.core.rollout.controls import CONTROLS

SCANNED = 65_536
"""Code points of a text that `value` looks at, counted after the white space in front of it."""

_RUN = re.compile(f"[{CONTROLS}]+")
_FRONT = re.compile(rf"[\s{CONTROLS}]*+")
_LONE = re.compile(r"[\ud800-\udfff]")


def one_line(text: str) -> str:
    """Turn each run of control characters into one space and trim the ends (DSC-52)."""
    return _LONE.sub("\ufffd", _RUN.sub(" ", text)).strip()


def cut(text: str, limit: int) -> str:
    """Shorten to `limit` code points, the last of them `…` if something was left off (DSC-51)."""
    if limit < 1:
        return ""
    # Half a surrogate pair cannot be written as UTF-8; replacing it changes no length.
    return _LONE.sub("\ufffd", text if len(text) <= limit else text[: limit - 1] + "…")


def value(text: str, limit: int) -> str:
    """Make `text` a value: redacted (DSC-81), on one line (DSC-52), cut (DSC-24, DSC-51).

    Only the first `SCANNED` code points count. Should they shrink below the limit, a word that they
    end in goes as well: it may be the front half of a secret whose other half was not looked at.
    """
    front = _FRONT.match(text)
    start = front.end() if front else 0
    seen = text[start : start + SCANNED]
    line = one_line(redact(seen))
    if len(text) - start > SCANNED and len(line) < limit:
        ends_in_a_word = one_line(seen[-1]) and not line.endswith(MARK)
        line = (line.rpartition(" ")[0].rstrip() if ends_in_a_word else line) + "…"
    return cut(line, limit)
