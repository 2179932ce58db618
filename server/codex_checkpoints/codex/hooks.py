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
from codex_checkpoints.codex.entries import CannotEdit, Entries, Hook, Hooks, Unreadable
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.values import frozen


def found_in(text: str) -> Hooks:
    """Return the hooks of a file.  Raises `Unreadable`."""
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
    while (at := _superfluous(result, wanted)) is not None:
        result = _without(result, at)
    _check(text, result)
    if not wanted.stand_in(found_in(result).ours):
        raise CannotEdit("the new hooks would not be read as they are meant")
    return result


def without_hooks(text: str) -> str:
    """Return the text without our hooks.  Raises `CannotEdit`."""
    result = text
    while (at := next(_ours(result), None)) is not None:
        result = _without(result, at)
    _check(text, result)
    if found_in(result).ours:
        raise CannotEdit("our hooks were rewritten by hand and cannot be told from the rest")
    return result


@frozen
class _At:
    """The place of a handler: its event, its group, and the values beside each."""

    events: list[Part]
    event: int
    groups: list[Part]
    group: int
    handlers: list[Part]
    handler: int

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        return self.events[self.event], self.groups[self.group], self.handlers[self.handler]

    @property
    def place(self) -> tuple[str | None, str]:
        return self.events[self.event].name, f"{self.group}:{self.handler}"


def _with_hook(text: str, wanted: Entries, hook: Hook) -> str:
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
    at = next(at for at in _ours(text) if at.place == (hook.event, there.place))
    _, group, _ = at.parts
    return text[: group.value] + new + text[group.end :]


def _superfluous(text: str, wanted: Entries) -> _At | None:
    """Return a handler of ours that is not the one for its hook."""
    events = _events(text)
    due = (entries.to_replace(hook.event, events.get(hook.event, ())) for hook in wanted.hooks)
    kept = {(each.event, each.place) for each in due if each is not None}
    return next((at for at in _ours(text) if at.place not in kept), None)


def _with_group(text: str, event: str, group: str) -> str:
    """Add a group at the end of its event, spaced as what stands before it.

    A blank before the group marks an array that was empty before.
    """
    hooks = member(text, first(text), "hooks")
    if hooks is None:
        raise CannotEdit("it has no hooks")
    there = member(text, hooks.value, event)
    if there is None:
        return _appended(text, list(parts(text, hooks.value)), f'"{event}": [{group}]')
    groups = list(parts(text, there.value))
    if groups:
        return _appended(text, groups, group)
    if text[there.value] != "[":
        raise CannotEdit(f"what it has for {event} is no list of hooks")
    return text[: there.value + 1] + " " + group + text[there.value + 1 :]


def _appended(text: str, siblings: list[Part], new: str) -> str:
    if not siblings:
        raise CannotEdit("it has no hooks")
    last = siblings[-1]
    head = text[: last.start]
    space = head[len(head.rstrip(" \t\r\n")) :]
    return text[: last.end] + "," + space + new + text[last.end :]


def _without(text: str, at: _At) -> str:
    """Remove a handler, with its group and its event where it was alone."""
    event, group, _ = at.parts
    if len(at.handlers) > 1:
        return _left(text, at.handlers, at.handler)
    if len(at.groups) > 1:
        return _left(text, at.groups, at.group)
    if text[event.value + 1 : group.start] == " ":
        return text[: group.start - 1] + text[group.end :]
    return _left(text, at.events, at.event)


def _ours(text: str) -> Iterator[_At]:
    """Yield our handlers; of an event that is named twice a parser reads only the last."""
    hooks = member(text, first(text), "hooks")
    events = [] if hooks is None else list(parts(text, hooks.value))
    last = {event.name: at for at, event in enumerate(events)}
    for at, event in enumerate(events):
        groups = _listed(text, event) if last[event.name] == at else []
        for number, group in enumerate(groups):
            inner = member(text, group.value, "hooks")
            handlers = [] if inner is None else _listed(text, inner)
            for which, handler in enumerate(handlers):
                if entries.is_our_handler(json.loads(text[handler.value : handler.end])):
                    yield _At(events, at, groups, number, handlers, which)


def _listed(text: str, part: Part) -> list[Part]:
    return list(parts(text, part.value)) if text[part.value] == "[" else []


def _check(before: str, after: str) -> None:
    try:
        same = entries.foreign(_parsed(before)) == entries.foreign(_parsed(after))
    except Unreadable:
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
        raise Unreadable(f"it is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise Unreadable("it is not a JSON object")
    return cast("dict[str, object]", data)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@frozen
class Part:
    """A value of an array or an object; `start` is that of its name, if it has one."""

    start: int
    value: int
    end: int
    name: str | None = None


def parts(text: str, position: int) -> Iterator[Part]:
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
        yield Part(start, position, end, name)
        position = _space(text, end)
        if text[position] == ",":
            position = _space(text, position + 1)


def first(text: str) -> int:
    """Return where the value of a text begins."""
    return _space(text, 0)


def member(text: str, position: int, name: str) -> Part | None:
    """Return the member of an object by its name, the last of several."""
    if text[position : position + 1] != "{":
        return None
    found = [part for part in parts(text, position) if part.name == name]
    return found[-1] if found else None


def _left(text: str, siblings: list[Part], gone: int) -> str:
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
