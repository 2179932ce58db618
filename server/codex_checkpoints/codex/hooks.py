"""Find, write and remove our hooks in the text of Codex's `hooks.json`.

A new group is added as the last of its event, and replaced in its place: Codex keeps trust by
position. The values that others added to ours are kept, and each result is parsed again, as in
`config`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import (
    CannotEdit,
    CodexHook,
    Entries,
    Handler,
    Hooks,
    UnreadableConfig,
)
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.values import frozen


def found_in(text: str) -> Hooks:
    """Return the hooks of a file.  Raises `UnreadableConfig`."""
    return entries.hooks_in(_events(text))


def with_hooks(text: str, wanted: Entries) -> str:
    """Return the text with our wanted hooks; the same text where they stand already.

    Raises `CannotEdit`.
    """
    if wanted.stand_in(found_in(text).ours):
        return text
    result = text
    for hook in wanted.hooks:
        result = _with_hook(result, wanted, hook)
    while (handler := _superfluous(result, wanted)) is not None:
        result = _without(result, handler)
    _check(text, result)
    if not wanted.stand_in(found_in(result).ours):
        raise CannotEdit("the new hooks would not be read as they are meant")
    return result


def without_hooks(text: str) -> str:
    """Return the text without our hooks.  Raises `CannotEdit`."""
    result = text
    while (handler := next(_ours(result), None)) is not None:
        result = _without(result, handler)
    _check(text, result)
    if found_in(result).ours:
        raise CannotEdit("our hooks were rewritten by hand and cannot be told from the rest")
    return result


def _with_hook(text: str, wanted: Entries, hook: CodexHook) -> str:
    """Replace our group in its place, or add a group at the end of its event.

    A handler in a group with others gets a group of its own; `_superfluous` finds the old one.
    """
    groups = entries.events_of(object_of(json.loads(text)).get("hooks")).get(hook.event, ())
    there = entries.to_replace(hook.event, groups)
    try:
        new = json.dumps(wanted.renewed(hook, groups), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise CannotEdit("a number in our hooks is too large to be written again") from error
    if there is None or not entries.is_our_group(there.group):
        return _with_group(text, hook.event, new)
    groups_there, number = _found(text, "hooks", hook.event, there.group_number)
    group = groups_there[number]
    return text[: group.value] + new + text[group.end :]


def _ours(text: str) -> Iterator[Handler]:
    return (each for there in found_in(text).ours.values() for each in there)


def _superfluous(text: str, wanted: Entries) -> Handler | None:
    """Return a handler of ours that is not the one for its hook."""
    events = _events(text)
    due = (entries.to_replace(hook.event, events.get(hook.event, ())) for hook in wanted.hooks)
    kept = {(each.event, each.place) for each in due if each is not None}
    return next((each for each in _ours(text) if (each.event, each.place) not in kept), None)


def _with_group(text: str, event: str, group: str) -> str:
    """Add a group at the end of its event, spaced as what stands before it.

    A blank before the group marks an array that was empty before.
    """
    if _found(text, "hooks")[1] < 0:
        raise CannotEdit("it has no hooks")
    events, at = _found(text, "hooks", event)
    if at < 0:
        return _appended(text, events, f'"{event}": [{group}]')
    there = events[at]
    groups = list(parts(text, there.value))
    if groups:
        return _appended(text, groups, group)
    if text[there.value] != "[":
        raise CannotEdit(f"what it has for {event} is no list of hooks")
    return text[: there.value + 1] + " " + group + text[there.value + 1 :]


def _appended(text: str, siblings: list[JsonPart], new: str) -> str:
    if not siblings:
        raise CannotEdit("it has no hooks")
    last = siblings[-1]
    head = text[: last.start]
    space = head[len(head.rstrip(" \t\r\n")) :]
    return text[: last.end] + "," + space + new + text[last.end :]


def _without(text: str, handler: Handler) -> str:
    """Remove a handler, with its group and its event where it was alone."""
    event, number = handler.event, handler.group_number
    if len(entries.handlers_of(handler.group)) > 1:
        return _left(text, *_found(text, "hooks", event, number, "hooks", handler.number))
    groups, _ = _found(text, "hooks", event, number)
    if len(groups) > 1:
        return _left(text, groups, number)
    (group,), (events, at) = groups, _found(text, "hooks", event)
    if text[events[at].value + 1 : group.start] == " ":
        return text[: group.start - 1] + text[group.end :]
    return _left(text, events, at)


def _check(before: str, after: str) -> None:
    try:
        same = entries.foreign(_parsed(before)) == entries.foreign(_parsed(after))
    except UnreadableConfig:
        same = False
    if not same:
        raise CannotEdit("it names something twice, so that nothing can be put beside it safely")


def _events(text: str) -> dict[str, list[object]]:
    return entries.events_of(_parsed(text).get("hooks"))


def _parsed(text: str) -> Mapping[str, object]:
    try:
        # A float is compared as it is written: not every one equals itself.
        data = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise UnreadableConfig(f"it is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise UnreadableConfig("it is not a JSON object")
    return cast("dict[str, object]", data)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@frozen
class JsonPart:
    """A value of an array or an object; `start` is that of its name, if it has one."""

    start: int
    value: int
    end: int
    name: str | None = None


def parts(text: str, position: int) -> Iterator[JsonPart]:
    """Yield the values of the array or object that begins here; none for another value."""
    if text[position : position + 1] not in {"[", "{"}:
        return
    named = text[position] == "{"
    position = _space(text, position + 1)
    while text[position] not in "]}":
        start, name = position, None
        if named:
            name, end = _DECODER.raw_decode(text, position)
            position = _space(text, _space(text, end) + 1)
        _, end = _DECODER.raw_decode(text, position)
        yield JsonPart(start, position, end, name)
        position = _space(text, end)
        if text[position] == ",":
            position = _space(text, position + 1)


def _found(text: str, *path: str | int) -> tuple[list[JsonPart], int]:
    """Return the values beside one, and its place among them, -1 for a name that is not there.

    A path has the names of members, of which the last of several counts, and places in arrays.
    """
    siblings, at, position = list[JsonPart](), 0, _space(text, 0)
    for key in path:
        siblings = list(parts(text, position))
        named = [-1, *(number for number, part in enumerate(siblings) if part.name == key)]
        at = key if isinstance(key, int) else named[-1]
        position = siblings[at].value if at >= 0 else position
    return siblings, at


def _left(text: str, siblings: list[JsonPart], gone: int) -> str:
    """Return a text without one value of an array or object, and without its comma."""
    part = siblings[gone]
    if gone > 0:
        return text[: siblings[gone - 1].end] + text[part.end :]
    if len(siblings) > 1:
        return text[: part.start] + text[siblings[1].start :]
    return text[: part.start] + text[part.end :]


def _space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()
