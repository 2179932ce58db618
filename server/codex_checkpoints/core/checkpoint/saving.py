"""What is kept of a session between two readings, as JSON values and back.

It is strict: a value of another type, or one that is missing, is an error, and then the session is
read anew.  Fields that are no arguments of their class are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.codec import Codec, Form

T = TypeVar("T")


def saved(record: object) -> object:
    """Return a record as JSON values."""
    return _codec.write(record)


def loaded(kind: type[T], value: object) -> T:
    """Take up what `saved` gave; raises `ValueError` for anything else."""
    return _codec.read(value, kind)


def _spelled(raw: bytes) -> str:
    """Spell a line of a rollout, which need not be UTF-8: mostly as it is."""
    return raw.decode("latin-1")


def _raw(value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError("expected str")
    return value.encode("latin-1")


def _none(value: object) -> None:
    """Take only None: there is no function between two readings."""
    if value is not None:
        raise TypeError("expected nothing")


_codec = Codec(
    names=str,
    fill="nothing",
    own={**kept.own, bytes: Form(_spelled, _raw), Callable: Form(_none, _none)},
)
