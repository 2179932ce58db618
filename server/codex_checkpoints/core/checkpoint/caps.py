"""Every bound in one place: what a checkpoint keeps at most, and what a view shows of it.

The numbers are those of requirements DSC-23, DSC-28 and DSC-44.  Cutting a value is the business
of `text`, choosing who is evicted that of the reducer and of `memory`.  The budgets of compactions
and restores stand here as well: settings need them, and nothing else of those two.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from codex_checkpoints.core.codec import camel
from codex_checkpoints.values import frozen

MAX_VALUE_CHARS = 160
"""No stored or shown value is longer, in code points (DSC-23)."""

MAX_URI_CHARS = 1024
"""A uri is never cut; a longer one is not recorded, but counted."""

RETAINED_TOKENS = 20_000
"""The default budget for the user's own words in a compaction (JUN-13); Codex has the same."""

DEFAULT_BUDGET = 8000
"""Tokens of a state pack where no setting says otherwise (`restoreBudgetTokens`)."""


class BadCaps(ValueError):
    """A cap that is missing, unknown, negative or not a whole number; the text says which."""


@frozen
class Limits:
    """What a checkpoint keeps at most (DSC-23, DSC-28)."""

    max_facts_total: int = 64
    max_decisions_total: int = 32
    max_plan_steps_total: int = 32
    max_recent_artifacts: int = 16
    max_artifacts_total: int = 256
    max_value_chars: int = MAX_VALUE_CHARS


@frozen
class Caps:
    """The caps a view was made with."""

    max_open_plan_steps: int = 12
    max_done_plan_steps: int = 5
    max_decisions: int = 12
    max_facts_valid: int = 32
    max_facts_suspect: int = 12
    max_recent_artifacts: int = 16
    max_value_chars: int = MAX_VALUE_CHARS

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            least = 1 if name == "max_value_chars" else 0
            if type(value) is not int or value < least:
                message = f"{camel(name)} must be a whole number of at least {least}"
                raise BadCaps(message)

    def replaced(self, chosen: Mapping[str, object]) -> Caps:
        """Return these caps with some replaced, named as in JSON; raise `BadCaps` for bad ones."""
        names = {camel(field.name): field.name for field in attrs.fields(Caps)}
        unknown = sorted(set(chosen) - set(names))
        if unknown:
            message = f"unknown cap {unknown[0]!r}; known are {', '.join(names)}"
            raise BadCaps(message)
        return attrs.evolve(self, **{names[name]: value for name, value in chosen.items()})

    def as_json(self) -> dict[str, int]:
        """Return the caps under their JSON names."""
        return {camel(field.name): getattr(self, field.name) for field in attrs.fields(Caps)}
