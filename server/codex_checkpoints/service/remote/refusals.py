"""Turns the errors of a remote into refusals."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage.remote.contract import RemoteError


@contextmanager
def remote_refusals(place: str) -> Generator[None]:
    """Turn a `RemoteError` of a block into a refusal with its code, sentence and hint.

    `place` is the place of the remote, for a person.
    """
    try:
        yield
    except RemoteError as error:
        facts = {"place": place, "hint": error.hint}
        raise Refusal(error.code, str(error), facts) from error
