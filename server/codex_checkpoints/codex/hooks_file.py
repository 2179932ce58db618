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
from codex_checkpoints.codex.amending import Place, amendment, found_at
from codex_checkpoints.codex.entries import CannotEdit, Entries, Hook, Unreadable, Written
from codex_checkpoints.codex.json_text import Part
from codex_checkpoints.values import frozen


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
    if wanted.stand_in(hooks_in(text)):
        return text
    result = _moved(_corrected(text, wanted), wanted)
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


def _corrected(text: str, wanted: Entries) -> str:
    """Correct whom our hooks call, and when, where they stand and nothing beside it."""
    events = _events(_parsed(text))
    plan = amendment(events, wanted)
    edits: list[tuple[int, int, str]] = []
    for place, at in _places(text):
        hook = plan.called.get(place)
        if hook is None:
            continue
        group, handler = found_at(events, place)
        _, outer, inner = (part.value for part in at.parts)
        if place in plan.kept and entries.written(group, handler).matcher != hook.matcher:
            edits += _correction(text, outer, "matcher", hook.matcher)
        edits += _correction(text, inner, "command", wanted.hook_command)
        if (limit := hook.context_limit) is not None:
            edits += _correction(text, inner, "additionalContextLimit", limit)
    after = text
    for start, end, new in sorted(edits, reverse=True):
        after = after[:start] + new + after[end:]
    return after


def _moved(text: str, wanted: Entries) -> str:
    """Put in what is missing, and take out what is too many or stands with hooks of others."""
    plan = amendment(_events(_parsed(text)), wanted)
    places = dict(_places(text))
    olds = {hook: _text_of(text, places[place].parts[-1]) for place, hook in plan.moved.items()}
    result = text
    for hook in wanted.hooks:
        if hook in olds or hook in plan.added:
            result = _with_group(result, hook.event, _group_text(wanted, hook, olds.get(hook)))
    for place in sorted(plan.gone | plan.moved.keys(), reverse=True):
        result = next(_without(result, at) for there, at in _places(result) if there == place)
    return result


def _correction(text: str, place: int, name: str, value: object) -> Iterator[tuple[int, int, str]]:
    """Yield what is to stand where for an object to say this of a member; None is no member."""
    siblings = list(json_text.parts(text, place))
    at = max((n for n, each in enumerate(siblings) if each.name == name), default=None)
    said = json.dumps(value, ensure_ascii=False)
    if at is None:
        if value is not None:
            start = siblings[0].start
            yield start, start, f"{json.dumps(name)}: {said}, "
    elif value is not None:
        if _read(text, siblings[at]) != value:
            yield siblings[at].value, siblings[at].end, said
    elif at:
        yield siblings[at - 1].end, siblings[at].end, ""
    else:
        # A group that has our handlers has them in another member.
        yield siblings[0].start, siblings[1].start, ""


def _text_of(text: str, part: Part) -> str:
    return text[part.value : part.end]


def _read(text: str, part: Part) -> object:
    return json.loads(_text_of(text, part))


def _group_text(wanted: Entries, hook: Hook, handler: str | None) -> str:
    """Return the group of a hook; `handler` is the text of one that is there already."""
    group = wanted.group(hook)
    if handler is None:
        return json.dumps(group, ensure_ascii=False)
    matcher = "" if hook.matcher is None else f'"matcher": {json.dumps(hook.matcher)}, '
    return f'{{{matcher}"hooks": [{handler}]}}'


@frozen
class _At:
    """Where a handler stands: in which group of which event, each among those beside it."""

    events: list[Part]
    event: int
    groups: list[Part]
    group: int
    handlers: list[Part]
    handler: int

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """Return its event, its group and the handler itself."""
        return self.events[self.event], self.groups[self.group], self.handlers[self.handler]


def _without_one(text: str) -> str:
    """Take out the first handler of ours, with its group and its event where it was alone."""
    for at in _handlers(text):
        if entries.is_our_handler(_read(text, at.parts[-1])):
            return _without(text, at)
    return text


def _without(text: str, at: _At) -> str:
    """Take out a handler, with its group and its event where it was alone."""
    event, group, _ = at.parts
    if len(at.handlers) > 1:
        return json_text.without(text, at.handlers, at.handler)
    if len(at.groups) > 1:
        return json_text.without(text, at.groups, at.group)
    if text[event.value + 1 : group.start] == " ":
        return text[: group.start - 1] + text[group.end :]
    return json_text.without(text, at.events, at.event)


def _places(text: str) -> Iterator[tuple[Place, _At]]:
    """Yield the handlers that a parser sees: of an event that is named twice, those of the last."""
    for at in _handlers(text):
        event = at.parts[0].name or ""
        if event not in {later.name for later in at.events[at.event + 1 :]}:
            yield (event, at.group, at.handler), at


def _handlers(text: str) -> Iterator[_At]:
    hooks = json_text.member(text, json_text.first(text), "hooks")
    events = [] if hooks is None else list(json_text.parts(text, hooks.value))
    for at, event in enumerate(events):
        groups = list(json_text.parts(text, event.value))
        for number, group in enumerate(groups):
            inner = json_text.member(text, group.value, "hooks")
            handlers = [] if inner is None else list(json_text.parts(text, inner.value))
            for which in range(len(handlers)):
                yield _At(events, at, groups, number, handlers, which)


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
