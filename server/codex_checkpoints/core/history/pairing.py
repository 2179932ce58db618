"""Calls and their outputs, paired as every request needs them.

A call without an output gets one that says it was aborted, right behind it.  An output without its
call is left out.  Where both are there the order is left as it is, even when it is odd.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from codex_checkpoints.core.history.forms import Item

ABORTED = "aborted"

_OUTPUT_OF = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
"""The type of output that answers each type of call."""

_OUTPUTS = frozenset(_OUTPUT_OF.values())


def is_output(item: Item) -> bool:
    """Return whether an item answers a call."""
    return item["type"] in _OUTPUTS


def paired(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return a history in which every call has an output and every output its call."""
    asked = {(_OUTPUT_OF[kind], call_id) for kind, call_id in _ids(items) if kind in _OUTPUT_OF}
    answered = {(kind, call_id) for kind, call_id in _ids(items) if kind in _OUTPUTS}
    whole: list[Item] = []
    for item in items:
        if is_output(item) and not _may_stay(item, asked):
            continue
        whole.append(item)
        output, call_id = _OUTPUT_OF.get(str(item["type"])), item.get("call_id")
        if output is not None and call_id is not None and (output, call_id) not in answered:
            whole.append(_aborted(output, call_id))
    return tuple(whole)


def _ids(items: Iterable[Item]) -> Iterator[tuple[str, object]]:
    return ((str(item["type"]), item.get("call_id")) for item in items)


def _may_stay(item: Item, asked: AbstractSet[tuple[str, object]]) -> bool:
    if item.get("call_id") is None:
        return True  # nothing says whose it is
    by_service = item["type"] == "tool_search_output" and item.get("execution") == "server"
    return by_service or (str(item["type"]), item["call_id"]) in asked


def _aborted(kind: str, call_id: object) -> Item:
    if kind == "tool_search_output":
        found: Item = {"status": "completed", "execution": "client", "tools": []}
        return {"type": kind, "call_id": call_id, **found}
    return {"type": kind, "call_id": call_id, "output": ABORTED}
