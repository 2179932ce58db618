"""Names the origin of a session, by the `source` in its head, and whether a person began it.

Codex lists the sessions of people only; programs and Codex itself begin others (rules, "Lists").
"""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.fields import Json, is_object, object_of, text_of

_DEFAULT = "vscode"
"""Codex assumes this if a head names no source."""
_UNKNOWN = "unknown"
_HELPER = "subagent"
_BY_PEOPLE = frozenset({"cli", "vscode"})
_BY_PROGRAMS = frozenset({"exec", "mcp"})
_SHORT = {"memory_consolidation": "memory"}
_LONGEST = 40


@frozen
class Source:
    """A word for the origin of a session; `background`: no person uses it."""

    word: str
    background: bool = False


def source_in(head: Json) -> Source:
    """Return the origin that the payload of a head names."""
    thread_source = text_of(head.get("thread_source"))
    if thread_source in _SHORT:
        return Source(_SHORT[thread_source], background=True)
    source = head.get("source")
    name = _DEFAULT if source is None else text_of(source)
    if name is not None:
        is_helper = thread_source == _HELPER or text_of(head.get("parent_thread_id")) is not None
        if is_helper and name in _BY_PEOPLE:
            return Source(_HELPER, background=True)
        return Source(_word(name), background=name in _BY_PROGRAMS)
    if not is_object(source):
        return Source(_UNKNOWN)
    custom, internal = text_of(source.get("custom")), text_of(source.get("internal"))
    if custom is not None:
        return Source(_word(custom))
    if internal is not None:
        return Source(_word(internal), background=True)
    if "subagent" not in source:
        return Source(_UNKNOWN)
    helper = source["subagent"]
    name = text_of(helper) or text_of(object_of(helper).get("other"))
    return Source(_word(name or _HELPER), background=True)


def _word(name: str) -> str:
    return _SHORT.get(name, name[:_LONGEST])
