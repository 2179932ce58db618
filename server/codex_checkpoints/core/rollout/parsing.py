"""What one line says, as a typed item.

Parsing never fails.  A line that is no JSON becomes `Unreadable`, a kind of line from the future
becomes `Unknown`, a known line that no checkpoint needs becomes `Quiet`.

Three forms of line occur (ROL-3, ROL-16): `{"timestamp","type","payload"}`, the same with an
`ordinal`, and the bare items of Codex before 0.32.  What stands in the payload of a line is read
by `responses` and `events`.
"""

from __future__ import annotations

from collections.abc import Callable

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
    QUIET,
    Compacted,
    HistoryBase,
    Item,
    SessionMeta,
    TurnContext,
    Unknown,
    Unreadable,
)
from codex_checkpoints.core.rollout.responses import RESPONSES, quiet, response_item

BOM = b"\xef\xbb\xbf"
"""Some editors and exports put this in front of a file."""


def parse(raw: bytes, *, first: bool = False) -> tuple[Item, int | None, str | None]:
    """Return what one line says, with the ordinal and the time stamp of its envelope.

    `first` allows the bare head of the oldest files.
    """
    value = load(raw)
    if isinstance(value, Unreadable):
        return value, None, None
    if not is_object(value):
        return Unreadable("not_object"), None, None
    kind, payload = value.get("type"), value.get("payload")
    stamp = text_of(value.get("timestamp"))
    if not is_object(payload) or not isinstance(kind, str):
        return _bare(value, first=first), whole_of(value.get("ordinal")), stamp
    make = LINES.get(kind)
    item = Unknown(kind[:64]) if make is None else make(payload)
    return item, whole_of(value.get("ordinal")), stamp


def item_of(raw: bytes) -> Item:
    """Return what one line says, without its envelope."""
    return parse(raw)[0]


def head_of(raw: bytes) -> SessionMeta | None:
    """Return the head that the first line of a file is, None when it is something else."""
    item, _, _ = parse(raw.removeprefix(BOM), first=True)
    return item if isinstance(item, SessionMeta) else None


def _bare(value: Json, *, first: bool) -> Item:
    """Read a line without envelope, as Codex before 0.32 wrote them (ROL-16)."""
    kind, session_id = value.get("type"), value.get("id")
    if kind is None and first and isinstance(session_id, str):
        return SessionMeta(session_id, bare=True, timestamp=text_of(value.get("timestamp")))
    if kind is None and "record_type" in value:
        return QUIET
    if isinstance(kind, str) and kind in RESPONSES:
        return response_item(value)
    return Unknown(str(kind)[:64])


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
    return Compacted()


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
