"""What the service will not do, with a code that doors pass on unchanged."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """A request that is not met: `code` from the interfaces page, a sentence, and facts."""

    def __init__(self, code: str, message: str, facts: Mapping[str, object] | None = None) -> None:
        """Say why; `facts` are JSON values that a caller may act on."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts: Mapping[str, object] = facts or {}


def misfit(problem: str) -> Refusal:
    """Return the refusal of something that was asked in a way that does not fit."""
    return Refusal("invalid_payload", problem, {"problems": [problem]})


class Cancelled(Exception):
    """The person who asked no longer wants the answer."""
