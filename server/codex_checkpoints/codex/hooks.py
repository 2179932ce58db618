"""Writes and removes our hooks in the text of Codex's `hooks.json`, if a person has hooks.

Ours come last of their event, since Codex keeps the trust in a hook by its place.  Every other byte
stays.  Each result is parsed again, and refused if other entries would change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import CannotEdit, Entries, UnreadableConfig
from codex_checkpoints.core.fields import is_object

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def groups_in(text: str) -> dict[str, list[object]]:
    """Return the groups of hooks of each event.  Raises `UnreadableConfig`."""
    return entries.groups_in(_parsed(text))


def with_hooks(text: str, wanted: Entries) -> str:
    """Return the text with only our wanted hooks; the same text if it has them already.

    Raises `CannotEdit`.
    """
    if wanted.are_all(entries.ours_in(groups_in(text))):
        return text
    result = _without_ours(text)
    for hook in wanted.hooks:
        group = json.dumps(wanted.group(hook), ensure_ascii=False)
        result = _with_group(result, hook.event, group)
    return _checked(text, result)


def without_hooks(text: str) -> str:
    """Return the text without our hooks.  Raises `CannotEdit`."""
    return _checked(text, _without_ours(text))


def _without_ours(text: str) -> str:
    while (place := next(_ours(text), None)) is not None:
        text = _without(text, *place)
    return text


def _ours(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield event, group and number of our handlers."""
    for event, groups in groups_in(text).items():
        for at, group in enumerate(groups):
            for number, handler in enumerate(entries.handlers_of(group)):
                if entries.is_our_handler(handler):
                    yield event, at, number


def _without(text: str, event: str, at: int, number: int) -> str:
    """Remove a handler, with its group and its event if it was the only one."""
    handlers = _found(text, "hooks", event, at, "hooks")
    if len(handlers) > 1:
        return _left(text, handlers, number)
    groups = _found(text, "hooks", event)
    if len(groups) > 1:
        return _left(text, groups, at)
    if text[: groups[0].start].endswith("[ "):  # the array was empty before
        return text[: groups[0].start - 1] + text[groups[0].end :]
    events = _found(text, "hooks")
    return _left(text, events, _place(events, event))


def _with_group(text: str, event: str, group: str) -> str:
    """Add a group at the end of its event, spaced like the group before it.

    A blank before the group marks an array that was empty before.
    """
    events = _found(text, "hooks")
    if (at := _place(events, event)) < 0:
        return _appended(text, events, f'"{event}": [{group}]')
    begin = events[at].value
    if text[begin] != "[":
        raise CannotEdit(f"its entry for {event} is not a list of hooks")
    groups = [*_parts(text, begin)]
    if groups:
        return _appended(text, groups, group)
    return text[: begin + 1] + " " + group + text[begin + 1 :]


def _appended(text: str, siblings: list[_Part], new: str) -> str:
    if not siblings:
        raise CannotEdit("it has no hooks")
    last = siblings[-1]
    head = text[: last.start]
    space = head[len(head.rstrip(" \t\r\n")) :]
    return text[: last.end] + "," + space + new + text[last.end :]


def _left(text: str, siblings: list[_Part], gone: int) -> str:
    """Return a text without one value of an array or object, and without its comma."""
    part = siblings[gone]
    if gone > 0:
        return text[: siblings[gone - 1].end] + text[part.end :]
    return text[: part.start] + text[siblings[1].start if len(siblings) > 1 else part.end :]


def _checked(before: str, after: str) -> str:
    try:
        if entries.foreign(_parsed(before)) == entries.foreign(_parsed(after)):
            return after
    except UnreadableConfig:
        pass
    raise CannotEdit("it names something twice, so that nothing can be put beside it safely")


def _parsed(text: str) -> Mapping[str, object]:
    try:
        # A float is compared in its written form: not every one equals itself.
        data: object = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise UnreadableConfig(f"it is not valid JSON: {error}") from error
    if not is_object(data):
        raise UnreadableConfig("it is not a JSON object")
    return data


# --- the places of values in a text ---------------------------------------------------------------


@frozen
class _Part:
    """A value of an array or an object; `start` is the start of its name, if it has one."""

    start: int
    value: int
    end: int
    name: str | None


def _parts(text: str, position: int) -> Iterator[_Part]:
    """Yield the values of the array or object that begins here; none for another value."""
    begin = text[position]
    if begin not in "[{":
        return
    position = _behind_space(text, position + 1)
    while text[position] not in "]}":
        start, name = position, None
        if begin == "{":
            name, end = _DECODER.raw_decode(text, position)
            position = _behind_space(text, _behind_space(text, end) + 1)
        _, end = _DECODER.raw_decode(text, position)
        yield _Part(start, position, end, name)
        position = _behind_space(text, end)
        if text[position] == ",":
            position = _behind_space(text, position + 1)


def _found(text: str, *path: str | int) -> list[_Part]:
    """Return the values at a path of names (the last of several counts) and indexes."""
    parts = [*_parts(text, _behind_space(text, 0))]
    for key in path:
        at = key if isinstance(key, int) else _place(parts, key)
        parts = [*_parts(text, parts[at].value)]
    return parts


def _place(parts: list[_Part], name: str) -> int:
    return max((at for at, part in enumerate(parts) if part.name == name), default=-1)


def _behind_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()
