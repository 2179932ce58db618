"""What one line says, as a typed item.

Parsing never fails.  A line that is no JSON becomes `Unreadable`, a kind of line from the future
becomes `Unknown`, a known line that no checkpoint needs becomes `Quiet`.

Three forms of line occur (ROL-3, ROL-16): `{"timestamp","type","payload"}`, the same with an
`ordinal`, and the bare items of Codex before 0.32.  What stands in the payload of a line is read
by `responses` and `events`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codex_checkpoints.core.rollout.events import event
from codex_checkpoints.core.rollout.fields import (
    Json,
    is_object,
    load,
    object_of,
    text_of,
    whole_of,
)
from codex_checkpoints.core.rollout.items import (
    ASSISTANT,
    COMPACTED,
    QUIET,
    WORKED,
    HistoryBase,
    Item,
    SessionMeta,
    TurnContext,
    Unknown,
)
from codex_checkpoints.core.rollout.responses import RESPONSES, quiet, response_item, worked

if TYPE_CHECKING:
    from codex_checkpoints.core.rollout.reader import Line

BOM = b"\xef\xbb\xbf"
"""Some editors and exports put this in front of a file."""


def said(value: Json, *, first: bool) -> tuple[str, Json, bool]:
    """Return the kind and the payload of a line, and whether it is bare (ROL-16).

    A bare line has no envelope.  `first` allows the bare head of the oldest files.
    """
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and is_object(payload):
        return kind, payload, False
    if kind is None and first and isinstance(value.get("id"), str):
        return "session_meta", value, True
    known = isinstance(kind, str) and kind in RESPONSES
    return ("response_item" if known else ""), value, True


def item_of(line: Line) -> Item:
    """Return what a line says."""
    if line.passed_over:
        return _passed_over(line)
    if line.bare:
        return _bare(line.kind, line.payload)
    make = LINES.get(line.kind)
    return Unknown(line.kind[:64]) if make is None else make(line.payload)


def head_of(raw: bytes) -> SessionMeta | None:
    """Return the head that the first line of a file is, None when it is something else."""
    value = load(raw.removeprefix(BOM))
    kind, payload, bare = said(object_of(value), first=True)
    item = _bare(kind, payload) if bare else _session_meta(payload)
    return item if kind == "session_meta" and isinstance(item, SessionMeta) else None


def _bare(kind: str, value: Json) -> Item:
    """Read a line without envelope, as Codex before 0.32 wrote them."""
    if kind == "session_meta":
        stamp = text_of(value.get("timestamp"))
        return SessionMeta(text_of(value.get("id")), bare=True, timestamp=stamp)
    if kind == "response_item":
        return response_item(value)
    told = value.get("type")
    return QUIET if told is None and "record_type" in value else Unknown(str(told)[:64])


def _passed_over(line: Line) -> Item:
    """Return what the beginning of a line says, of which no more is wanted."""
    if line.kind == "compacted":
        return COMPACTED
    if line.kind != "response_item":
        return QUIET
    if line.tag == "message":
        return ASSISTANT if line.inner == "assistant" else WORKED
    return WORKED if RESPONSES.get(line.tag or "") is worked else QUIET


def _session_meta(payload: Json) -> Item:
    source = payload.get("source")
    spawn = object_of(object_of(object_of(source).get("subagent")).get("thread_spawn"))
    parent = text_of(payload.get("parent_thread_id")) or text_of(spawn.get("parent_thread_id"))
    return SessionMeta(
        session_id=text_of(payload.get("id")),
        cwd=text_of(payload.get("cwd")),
        cli_version=text_of(payload.get("cli_version")),
        originator=text_of(payload.get("originator")),
        source=source if isinstance(source, str) else next(iter(object_of(source)), None),
        thread_source=text_of(payload.get("thread_source")),
        model_provider=text_of(payload.get("model_provider")),
        paginated=payload.get("history_mode") == "paginated",
        forked_from=text_of(payload.get("forked_from_id")),
        parent_session=parent,
        base=_base(object_of(payload.get("history_base"))),
        inherited_below=whole_of(payload.get("subagent_history_start_ordinal")),
        timestamp=text_of(payload.get("timestamp")),
    )


def _base(base: Json) -> HistoryBase | None:
    rollout_id = text_of(base.get("thread_id"))
    if rollout_id is None:
        return None
    end_ordinal = whole_of(base.get("end_ordinal_exclusive"))
    return HistoryBase(rollout_id, end_ordinal, whole_of(base.get("end_byte_offset")))


def _turn_context(payload: Json) -> Item:
    return TurnContext(
        text_of(payload.get("turn_id")), text_of(payload.get("cwd")), text_of(payload.get("model"))
    )


def _compacted(_payload: Json) -> Item:
    return COMPACTED


LINES: dict[str, Callable[[Json], Item]] = {
    "session_meta": _session_meta,
    "turn_context": _turn_context,
    "response_item": response_item,
    "event_msg": event,
    "compacted": _compacted,
    **dict.fromkeys(
        (
            "world_state",
            "token_usage_record",
            "retained_context",
            "security_risk_score",
            "realtime_item",
            "dynamic_tools_updated",
            "inter_agent_communication",
            "inter_agent_communication_metadata",
            "guardian_history",
        ),
        quiet,
    ),
}
"""What is made of each known kind of line."""
