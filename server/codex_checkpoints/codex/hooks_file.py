"""Our hooks in Codex's `hooks.json`, put in and taken out as text.

Only for a file that has hooks already: then ours stand beside them, since Codex warns where hooks
come from two files.  A group of ours is the last of its event, so that the trust a person gave to
others, which Codex keeps by position, still fits.  Every other byte stays; each result is read once
more, as in `config_file`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from codex_checkpoints.codex import entries, json_text
from codex_checkpoints.codex.entries import CannotEdit, Entries, Unreadable, Written
from codex_checkpoints.codex.json_text import Part


def hooks_in(text: str) -> dict[str, tuple[Written, ...]]:
    """Return our hooks by event.  Raises `Unreadable`."""
    return entries.written_in(_events(_parsed(text)), entries.is_our_handler)


def by_hand_in(text: str) -> dict[str, tuple[Written, ...]]:
    """Return the hooks by event that call us and that a person wrote.  Raises `Unreadable`."""
    return entries.written_by_hand(_events(_parsed(text)))


def places_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return where hooks that call us stand, by event, as Codex counts.  Raises `Unreadable`."""
    events = _events(_parsed(text))
    return {event: tuple(entries.places_of(groups)) for event, groups in events.items()}


def has_foreign_hooks(text: str) -> bool:
    """Are there hooks of others?  Raises `Unreadable`."""
    events = _events(_parsed(text)).values()
    return any(not entries.is_our_handler(h) for g in events for h in entries.handlers_in(g))


def with_hooks(text: str, wanted: Entries) -> str:
    """Return the text with our hooks and no others of ours; the same text where they stand.

    Raises `CannotEdit`.
    """
    there = hooks_in(text)
    if wanted.stand_in(there):
        return text
    if wanted.calls_alike(there) and (mended := _mended(text, wanted)) is not None:
        return mended
    result = without_hooks(text)
    for hook in wanted.hooks:
        group = json.dumps(wanted.group(hook), ensure_ascii=False)
        result = _with_group(result, hook.event, group)
    _check(text, result)
    if not wanted.stand_in(hooks_in(result)):
        raise CannotEdit("the new hooks would not be read as they are meant")
    return result


def without_hooks(text: str) -> str:
    """Return the text without our hooks.  Raises `CannotEdit`."""
    result = text
    for _ in range(sum(map(len, hooks_in(text).values()))):
        result = _without_one(result)
    _check(text, result)
    if hooks_in(result):
        raise CannotEdit("our hooks were rewritten by hand and cannot be told from the rest")
    return result


# --- text ----------------------------------------------------------------------------------------


def _with_group(text: str, event: str, group: str) -> str:
    """Put a group at the end of its event, spaced as what stands before it.

    An array that was empty is told from a new one by the blank before the group.
    """
    hooks = json_text.member(text, json_text.first(text), "hooks")
    if hooks is None:
        raise CannotEdit("it has no hooks")
    there = json_text.member(text, hooks.value, event)
    if there is None:
        return _appended(text, list(json_text.parts(text, hooks.value)), f'"{event}": [{group}]')
    groups = list(json_text.parts(text, there.value))
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


def _mended(text: str, wanted: Entries) -> str | None:
    """Correct when our hooks are called, where they stand and nothing beside it.

    None where they have to be written anew.
    """
    hooks = {hook.event: hook for hook in wanted.hooks}
    edits: list[tuple[int, int, str]] = []
    for events, at, groups, number, handlers, which in _handlers(text):
        hook, group, handler = hooks.get(events[at].name or ""), groups[number], handlers[which]
        if hook is None or not entries.is_our_handler(_read(text, handler)):
            continue
        if entries.is_our_group(_read(text, group)):
            edits += _correction(text, group.value, "matcher", hook.matcher)
        if hook.context_limit is not None:
            limit = hook.context_limit
            edits += _correction(text, handler.value, "additionalContextLimit", limit)
    after = text
    for start, end, new in sorted(edits, reverse=True):
        after = after[:start] + new + after[end:]
    try:
        _check(text, after)
        return after if wanted.stand_in(hooks_in(after)) else None
    except CannotEdit:
        return None


def _correction(text: str, place: int, name: str, value: object) -> Iterator[tuple[int, int, str]]:
    """Yield what is to stand where for an object to say this of a member; None is no member."""
    siblings = list(json_text.parts(text, place))
    at = next((n for n, each in enumerate(siblings) if each.name == name), None)
    if at is None:
        if value is not None:
            start = siblings[0].start
            yield start, start, f"{json.dumps(name)}: {json.dumps(value)}, "
    elif value is not None:
        yield siblings[at].value, siblings[at].end, json.dumps(value)
    elif at:
        yield siblings[at - 1].end, siblings[at].end, ""
    else:
        # A group that has our handlers has them in another member.
        yield siblings[0].start, siblings[1].start, ""


def _read(text: str, part: Part) -> object:
    return json.loads(text[part.value : part.end])


def _without_one(text: str) -> str:
    """Take out the first handler of ours, with its group and its event where it was alone."""
    for events, at, groups, number, handlers, which in _handlers(text):
        group, handler = groups[number], handlers[which]
        if not entries.is_our_handler(_read(text, handler)):
            continue
        if len(handlers) > 1:
            return json_text.without(text, handlers, which)
        if len(groups) > 1:
            return json_text.without(text, groups, number)
        if text[events[at].value + 1 : group.start] == " ":
            return text[: group.start - 1] + text[group.end :]
        return json_text.without(text, events, at)
    return text


def _handlers(
    text: str,
) -> Iterator[tuple[list[Part], int, list[Part], int, list[Part], int]]:
    hooks = json_text.member(text, json_text.first(text), "hooks")
    events = [] if hooks is None else list(json_text.parts(text, hooks.value))
    for at, event in enumerate(events):
        groups = list(json_text.parts(text, event.value))
        for number, group in enumerate(groups):
            inner = json_text.member(text, group.value, "hooks")
            handlers = [] if inner is None else list(json_text.parts(text, inner.value))
            for which in range(len(handlers)):
                yield events, at, groups, number, handlers, which


# --- meaning -------------------------------------------------------------------------------------


def _check(before: str, after: str) -> None:
    try:
        same = _foreign(_parsed(before)) == _foreign(_parsed(after))
    except Unreadable:
        same = False
    if not same:
        raise CannotEdit("it names something twice, so that nothing can be put beside it safely")


def _foreign(data: Mapping[str, object]) -> dict[str, object]:
    hooks = dict(cast("Mapping[str, object]", data["hooks"])) if _is_table(data) else {}
    for event, groups in _events(data).items():
        hooks[event] = entries.foreign_groups(groups)
    kept = {name: value for name, value in hooks.items() if value != []}
    return {**data, "hooks": kept} if _is_table(data) else dict(data)


def _is_table(data: Mapping[str, object]) -> bool:
    return isinstance(data.get("hooks"), dict)


def _events(data: Mapping[str, object]) -> dict[str, list[object]]:
    return entries.groups_by_event(data.get("hooks"))


def _parsed(text: str) -> Mapping[str, object]:
    try:
        # A float is compared as it is written: not every one equals itself.
        data = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise Unreadable("it is not a JSON object")
    return cast("dict[str, object]", data)
