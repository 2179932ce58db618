"""Which lines somebody needs, told from their first bytes.

Most bytes of a rollout are tool outputs and images that no checkpoint needs.  Codex writes the
keys of an envelope in a fixed order, the tag of an item first in its payload, so one regular
expression tells nine lines in ten apart without reading them.  It is exact: what does not match to
the byte (other key order, spaces, a kind that must be read, a line of another tool) is for the full
parser.

A quote inside a JSON string is always escaped, so a pattern with bare quotes around a key can only
match the key itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from codex_checkpoints.core.rollout.events import EVENTS, ITEMS
from codex_checkpoints.core.rollout.parsing import LINES
from codex_checkpoints.core.rollout.responses import RESPONSES, quiet, worked
from codex_checkpoints.values import frozen

# Plain numbers: an enumeration's members cost a look-up each, in a loop that runs for every line.
READ: Final = -1
"""Read at once, by the full parser: what no prefix tells."""
SKIP: Final = 0
TOKENS: Final = 1
"""Only the newest is ever read."""
ANSWER: Final = 2
"""The model's message: only where the last one stands matters."""
WORK: Final = 3
"""The model's work: only where the last of it stands matters."""
CONTEXT: Final = 4
"""Only the newest is ever read, but for the folder."""
COMPACTED: Final = 5
"""That it is there is all there is to know."""
RUN: Final = 6
"""Something that happened, with its outcome: read when it may matter."""
CALL: Final = 7
"""A call whose outcome comes later: read when that may matter."""
PLAIN_CALL: Final = 8
"""A call of a tool of which only matters that it ended, unless it applies a patch."""
PATCH: Final = 9
"""A patch, handed to the tool for patches."""
OUTPUT: Final = 10
"""The outcome of a call, read when it may matter."""
HISTORY: Final = 11
"""A user's message in the model's history, void once events tell what a person typed."""

STAMP: Final = slice(14, 38)
"""Where the time stamp of a line stands whose prefix is known."""

_OPTIONAL = rb'(?:,"id":"[^"]*+")?+(?:,"status":"[^"]*+")?+'
_CALL_ID = rb'(?:,"id":"[^"]*+")?+(?:,"status":"[^"]*+")?+,"call_id":"([^"\\]{1,256}+)"'
_PLAIN = rb"(?:shell|shell_command|exec_command|container\.exec|view_image|read_file)"
_USAGE = rb',"info":\{"total_token_usage":\{[^}]*+\},"last_token_usage":\{"'
_ITEM = rb',"thread_id":"[^"]*+","turn_id":"[^"]*+","item":\{"type":"'


@frozen
class Judge:
    """What is to become of the lines of a kind of file.

    The first group of `prefix` is the ordinal; `wishes` says by `lastindex` what the match means.
    """

    prefix: re.Pattern[bytes]
    wishes: tuple[int, ...]


@cache
def judge(*, paginated: bool, ordinals: bool, typed: bool) -> Judge:
    """Return how to judge lines; `typed` says that events tell what a person typed.

    In paginated files items alone tell what happened, whatever the history repeats (ROL-14).
    """
    responses, events = _PAGINATED if paginated else _TYPED if typed else _UNTYPED
    wishes: list[int] = [READ, READ]

    def marked(tails: Iterable[tuple[bytes, int]]) -> bytes:
        # An empty group behind each alternative tells which of them matched.
        alternatives: list[bytes] = []
        for tail, wish in tails:
            wishes.extend([wish] * (1 + tail.count(b"([")))
            alternatives.append(tail + b"()")
        return b"(?:" + b"|".join(alternatives) + b")"

    number = rb'"ordinal":(0|[1-9][0-9]{0,14}+),' if ordinals else b"()"
    pattern = (
        rb'\{"timestamp":".{24}",' + number + rb'"type":"(?:'
        rb'response_item","payload":\{"type":"'
        + marked(responses)
        + rb'|event_msg","payload":\{"type":"'
        + marked(events)
        + rb"|"
        + marked(_LINES)
        + rb")"
    )
    return Judge(re.compile(pattern), tuple(wishes))


def _tags(
    wish: int, tags: Iterable[str], *, before: bytes = b"", behind: bytes = b'"'
) -> tuple[bytes, int]:
    return before + b"(?:" + "|".join(tags).encode() + b")" + behind, wish


def _made(makers: Mapping[str, object], *wanted: object) -> list[str]:
    return [tag for tag, make in makers.items() if make in wanted]


_BRACE = rb'","payload":\{'
_LINES = (
    (b"turn_context" + _BRACE, CONTEXT),
    (b"compacted" + _BRACE, COMPACTED),
    _tags(SKIP, _made(LINES, quiet), behind=_BRACE),
)
_EVENTS = (
    (rb'token_count"' + _USAGE, TOKENS),
    (rb'token_count","info":null', SKIP),
    _tags(SKIP, _made(EVENTS, quiet)),
)
_PAGINATED = (
    (
        _tags(SKIP, sorted(set(RESPONSES) - {"function_call"})),
        (rb'function_call"' + _OPTIONAL + rb',"name":"(?!update_plan")[^"]++"', SKIP),
    ),
    (
        *_EVENTS,
        (rb'item_completed"' + _ITEM + rb'(?:CommandExecution|FileChange)"', RUN),
        _tags(SKIP, _made(ITEMS, quiet), before=rb'item_completed"' + _ITEM),
        _tags(
            SKIP,
            (
                "user_message",
                "patch_apply_end",
                "exec_command_end",
                "mcp_tool_call_end",
                "view_image_tool_call",
            ),
        ),
    ),
)


def _older(user: int) -> tuple[tuple[tuple[bytes, int], ...], tuple[tuple[bytes, int], ...]]:
    """Return what to do in older files, and with user messages of the model's history there."""
    role = b"message" + b'"' + _OPTIONAL + rb',"role":"'
    name = rb'function_call"' + _OPTIONAL + rb',"name":"'
    return (
        (
            _tags(WORK, _made(RESPONSES, worked)),
            (name + _PLAIN + rb'","arguments":"', PLAIN_CALL),
            (name + rb'(?!update_plan")[^"]++"', CALL),
            (rb'(?:function|custom_tool)_call_output"' + _CALL_ID, OUTPUT),
            (rb'custom_tool_call"' + _CALL_ID + rb',"name":"apply_patch","input":"', PATCH),
            (role + rb'assistant"', ANSWER),
            (role + rb'(?:developer|system)"', WORK),
            (role + rb'user"', user),
            _tags(SKIP, _made(RESPONSES, quiet)),
        ),
        (*_EVENTS, _tags(SKIP, ITEMS, before=rb'item_completed"' + _ITEM)),
    )


_UNTYPED = _older(HISTORY)
_TYPED = _older(WORK)
