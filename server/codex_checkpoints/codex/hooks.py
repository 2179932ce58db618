"""Write and remove our hooks in the text of Codex's `hooks.json`, where a person has hooks.

The file is written anew with its own indent and line ends; what it says besides stays.  Ours come
last, since Codex keeps the trust in a hook by its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import CannotEdit, Entries, UnreadableConfig
from codex_checkpoints.core.rollout.fields import is_object, object_of

_INDENT = re.compile(r"\n([ \t]+)")


def groups_in(text: str) -> dict[str, list[object]]:
    """Return the groups of hooks of each event.  Raises `UnreadableConfig`."""
    return entries.groups_in(_parsed(text))


def with_hooks(text: str, wanted: Entries) -> str:
    """Return the text with our wanted hooks alone; the same text where they stand already.

    Raises `CannotEdit`.
    """
    data = _parsed(text)
    groups = entries.groups_in(data)
    if wanted.are_all(entries.ours_in(groups)):
        return text
    hooks = {**object_of(data.get("hooks")), **entries.without_ours(groups)}
    for hook in wanted.hooks:
        others = hooks.get(hook.event, [])
        if not isinstance(others, list):
            raise CannotEdit(f"what it has for {hook.event} is no list of hooks")
        hooks[hook.event] = [*others, wanted.group(hook)]
    return _written({**data, "hooks": hooks}, text)


def without_hooks(text: str, copies: Iterable[str]) -> str:
    """Return the text without our hooks: the copy of before that says the same, if there is one.

    Raises `CannotEdit`.
    """
    data = _parsed(text)
    if not any(entries.ours_in(entries.groups_in(data))):
        return text
    left = entries.foreign(data)
    return next((copy for copy in copies if _is(copy, left)), _written(left, text))


def _written(data: Mapping[str, object], like: str) -> str:
    found = _INDENT.search(like)
    text = json.dumps(data, indent=None if found is None else found[1], ensure_ascii=False)
    text += like[len(like.rstrip()) :].replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _is(text: str, left: Mapping[str, object]) -> bool:
    """Return whether a text says this, and nothing of ours."""
    data = _parsed(text)
    return entries.foreign(data) == left and not any(entries.ours_in(entries.groups_in(data)))


def _parsed(text: str) -> Mapping[str, object]:
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableConfig(f"it is not valid JSON: {error}") from error
    if not is_object(data):
        raise UnreadableConfig("it is not a JSON object")
    return data
