"""What becomes of each hook of ours in a file, so that it is corrected and not replaced.

What a person or Codex wrote beside what we say of a hook stays with it.  Where hooks stand in a
text is known to `config_file` and `hooks_file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import Entries, Hook
from codex_checkpoints.values import frozen

Place = tuple[str, int, int]
"""An event, the number of a group among its groups, and that of a handler in the group."""

_OURS_TO_SAY = frozenset({"command", "additionalContextLimit"})


@frozen
class Amendment:
    """What becomes of the handlers of ours, by their places, and which hooks have none.

    A handler that is `moved` stands in a group with handlers of others, whose matcher is not its
    own; so it gets a group for itself.
    """

    kept: Mapping[Place, Hook]
    moved: Mapping[Place, Hook]
    gone: frozenset[Place]
    added: tuple[Hook, ...]

    @property
    def called(self) -> Mapping[Place, Hook]:
        """Return the handlers that stay, here or elsewhere, and what each is called for."""
        return {**self.kept, **self.moved}


def amendment(events: Mapping[str, Sequence[object]], wanted: Entries) -> Amendment:
    """Say what becomes of the handlers in the groups of each event; one for each hook stays."""
    ours = _ours(events)
    kept: dict[Place, Hook] = {}
    moved: dict[Place, Hook] = {}
    added: list[Hook] = []
    for hook in wanted.hooks:
        there = [place for place in ours if place[0] == hook.event]
        fit = [place for place in there if _may_stay(events, place, hook)]
        best = sorted(fit, key=lambda place: not stands(events, place, hook, wanted))
        if best:
            kept[best[0]] = hook
        elif there:
            moved[there[0]] = hook
        else:
            added.append(hook)
    return Amendment(kept, moved, frozenset(ours) - kept.keys() - moved.keys(), tuple(added))


def stands(
    events: Mapping[str, Sequence[object]], place: Place, hook: Hook, wanted: Entries
) -> bool:
    """Say whether the handler at a place is called as it ought to be for a hook."""
    written = entries.written(*found_at(events, place))
    return written.command == wanted.hook_command and hook.is_said_by(written)


def found_at(events: Mapping[str, Sequence[object]], place: Place) -> tuple[object, object]:
    """Return the group and the handler at a place."""
    event, number, which = place
    group = events[event][number]
    return group, entries.handlers_of(group)[which]


def additions(events: Mapping[str, Sequence[object]], wanted: Entries) -> dict[str, object]:
    """Return by event what the handlers that stay say beside what is ours to say."""
    return {
        hook.event: {
            name: value
            for name, value in cast("Mapping[str, object]", found_at(events, place)[1]).items()
            if name not in _OURS_TO_SAY
        }
        for place, hook in amendment(events, wanted).called.items()
    }


def _ours(events: Mapping[str, Sequence[object]]) -> list[Place]:
    return [
        (event, number, which)
        for event, groups in events.items()
        for number, group in enumerate(groups)
        for which, handler in enumerate(entries.handlers_of(group))
        if entries.is_our_handler(handler)
    ]


def _may_stay(events: Mapping[str, Sequence[object]], place: Place, hook: Hook) -> bool:
    """Say whether the group is right, or is ours to correct."""
    group, handler = found_at(events, place)
    return entries.is_our_group(group) or entries.written(group, handler).matcher == hook.matcher
