"""What can be told of a line by a look at one or two places in it, without reading it.

Each function is exact on lines as Codex writes them, and gives None or False where a line has
another shape; the caller then reads it.
"""

from __future__ import annotations

import re

_CALL_ID_KEY = b'","call_id":"'
_MODEL = b',"model":"'
_OUTPUT_KEY = b',"aggregated_output":"'
_EXIT_KEY = b'","exit_code":'
_HEAD = b'{"timestamp":"'
_PASSED_KEY = b',"internal_chat_message_metadata_passthrough":{"turn_id":"'
_PASSED = re.compile(re.escape(_PASSED_KEY) + rb'[^"\\]*"\}\}\}')
_LONG_LINE = 2048
_NEAR_END = 256
_NEAR_START = 800


def call_id_of(raw: bytes) -> str | None:
    """Return the call id of a line that calls a function."""
    key = raw.find(_CALL_ID_KEY)
    start = key + len(_CALL_ID_KEY)
    call_id = raw[start : raw.find(b'"', start)]
    return None if key < 0 or b"\\" in call_id else call_id.decode(errors="replace")


def may_patch(raw: bytes) -> bool:
    """Return whether a line with a call may be about a patch; if not, it surely is not."""
    return b"apply" in raw or b"*** Begin" in raw


def ends_whole(raw: bytes) -> bool:
    """Return whether a line with an output has surely not lost its end.

    The text of an output ends with the only bare quote in front of the closing braces.
    """
    tail = raw[-_NEAR_END:]
    passed = tail.find(_PASSED_KEY)
    if passed >= 0 and _PASSED.fullmatch(tail, passed):
        tail = tail[:passed]
    elif tail.endswith(b"}}"):
        tail = tail[:-2]
    closed = tail.endswith((b'"', b'"}]')) and not tail.endswith((b'\\"', b'\\"}]'))
    return closed and b'":{"' not in tail


def is_whole(raw: bytes) -> bool:
    """Return whether such a line has, moreover, not run into another one."""
    return ends_whole(raw) and raw.find(_HEAD, 1) < 0


def folder_key(folder: str) -> bytes:
    """Return how a line names this folder."""
    return b'"cwd":"' + folder.encode(errors="replace") + b'"'


def keeps_folder(data: bytes, start: int, end: int, key: bytes) -> bool:
    """Return whether the settings of a turn, from `start` on, name a known folder, and a model."""
    at = data.find(key, start, start + _NEAR_START)
    return at > 0 and data.find(b"{", start, at) < 0 and data.find(_MODEL, at, end) > 0


def without_output(raw: bytes) -> bytes:
    """Return the line of a command without what the command printed, when that is long."""
    if len(raw) > _LONG_LINE:
        cut = raw.find(_OUTPUT_KEY)
        rest = raw.rfind(_EXIT_KEY, cut) if cut > 0 else -1
        # A line that ran into the next one must not become readable by this.
        if rest > 0 and raw.find(_HEAD, cut, rest) < 0:
            return raw[:cut] + raw[rest + 1 :]
    return raw
