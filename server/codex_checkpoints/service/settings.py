"""Settings that all doors share: `config.toml` in the state folder, overridden by the editor's.

A setting that is wrong is left at its default and reported; it never stops anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from typing import Any, cast

from attrs import Factory, evolve, frozen

from codex_checkpoints.core.checkpoint.caps import BadCaps, Caps
from codex_checkpoints.workspace import DEFAULT_HASH_LIMIT


@frozen
class Settings:
    """Everything that can be chosen.

    `hash_limit_bytes` is the size above which a file gets a `stat:` hash; `caps_per_model` are
    view caps for sessions of one model (DSC-72); `followed_sessions` bounds how many sessions have
    their files watched, the newest first.
    """

    checkpoint_location: str = "state"
    hash_limit_bytes: int = DEFAULT_HASH_LIMIT
    hash_outside_folder: bool = False
    followed_sessions: int = 16
    caps: Caps = Factory(Caps)
    caps_per_model: Mapping[str, Caps] = Factory(dict[str, Caps])

    def caps_for(self, model: str | None) -> Caps:
        """Return the caps in force for a session of this model."""
        return self.caps if model is None else self.caps_per_model.get(model, self.caps)


def read_settings(text: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of a `config.toml`, and a sentence for each that is wrong."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Settings(), (f"not valid TOML: {error}",)
    return overridden(Settings(), table)


def overridden(settings: Settings, table: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Return settings with some replaced by name, and a sentence for each that is wrong."""
    problems: list[str] = []
    for name, value in table.items():
        rule = _RULES.get(name)
        if rule is None:
            problems.append(f"unknown setting {name!r}")
            continue
        try:
            settings = rule(settings, value)
        except (BadCaps, TypeError, ValueError) as error:
            problems.append(f"setting {name!r}: {error}")
    return settings, tuple(problems)


def _location(settings: Settings, value: object) -> Settings:
    if value not in {"state", "beside"}:
        message = 'must be "state" or "beside"'
        raise ValueError(message)
    return evolve(settings, checkpoint_location=value)


def _whole(field: str, least: int) -> Callable[[Settings, object], Settings]:
    def rule(settings: Settings, value: object) -> Settings:
        if type(value) is not int or value < least:
            message = f"must be a whole number of at least {least}"
            raise ValueError(message)
        return evolve(settings, **{field: value})

    return rule


def _outside(settings: Settings, value: object) -> Settings:
    if not isinstance(value, bool):
        message = "must be true or false"
        raise TypeError(message)
    return evolve(settings, hash_outside_folder=value)


def _caps(settings: Settings, value: object) -> Settings:
    chosen = _table(value)
    models = _table(chosen.pop("models", {}))
    caps = settings.caps.replaced(chosen)
    per_model = {model: caps.replaced(_table(own)) for model, own in models.items()}
    return evolve(settings, caps=caps, caps_per_model=per_model)


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("must be a table")
    return {str(name): each for name, each in cast("dict[object, object]", value).items()}


_RULES: Mapping[str, Callable[[Settings, Any], Settings]] = {
    "checkpointLocation": _location,
    "hashLimitBytes": _whole("hash_limit_bytes", 0),
    "hashOutsideFolder": _outside,
    "followedSessions": _whole("followed_sessions", 0),
    "caps": _caps,
}
