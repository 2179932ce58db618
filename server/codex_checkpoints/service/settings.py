"""Reads the settings: `config.toml` in the state folder, overridden by the editor's.

An invalid setting keeps its default and is reported.  Only invalid hooks stop compactions.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from attrs import Factory, evolve, frozen

from codex_checkpoints.core.checkpoint.records import (
    DEFAULT_BUDGET,
    IGNORED,
    RETAINED_TOKENS,
    BadCaps,
    Caps,
)
from codex_checkpoints.core.fields import is_list
from codex_checkpoints.storage.workspace import DEFAULT_HASH_LIMIT

WINDOW_VARIABLES: tuple[str, str] = (
    "AI_MODEL_CONTEXT_WINDOW_TOKENS",
    "AI_FAST_MODEL_CONTEXT_WINDOW_TOKENS",
)
"""The variables that override the window of the model, and of the smaller one (JUN-21)."""

_LONGEST_NAME = 128
CODEX_TIMEOUT = 300
"""Timeout in seconds for a summary by Codex: its model reads the whole window once."""

FAILURE_POLICIES = ("stop", "continue")
HOOK_EVENTS = ("preCompact", "postCompact")


@frozen
class CompactionHook:
    """A program that runs around a compaction; `on_failure` is the effect of its failure."""

    command: tuple[str, ...]
    timeout_seconds: float = 10.0
    on_failure: Literal["stop", "continue"] = "stop"


_UNREADABLE_HOOKS: Mapping[str, tuple[CompactionHook, ...]] = {"preCompact": (CompactionHook(()),)}
"""Replaces unreadable hooks: they might have refused, so no compaction starts."""


@frozen
class Settings:
    """All settings.

    `hash_limit_bytes` is the size above which a file gets a `stat:` hash; `caps_per_model` are view
    caps by model (DSC-72); `followed_sessions` is the number of the newest sessions whose files are
    watched; `drift_guard` reports edits off plan and recent work (DSC-68); `retained_tokens` is the
    size of the user's own words that a compaction keeps (JUN-13); `context_window_tokens`, above 0,
    replaces a model's own window (JUN-21), `fast_context_window_tokens` the smaller model's;
    `compaction_offer` is the action on a full window (JUN-36); `hooks` are programs by event
    (CKP-11); `codex_timeout_seconds` limits a summary by Codex (CKP-20); `mark_before_compaction`
    marks before each compaction of Codex's; `file_copies` are the files that a hook copies before
    Codex writes them; `digest_tokens` is the maximum for a digest in a handoff,
    `hook_digest_tokens` in a hook's answer to Codex, 0 for none; `digest_ignore` are names of files
    that are never quoted; `never_push` are globs of folders whose sessions never leave this
    machine; `restore_budget_tokens` is for the state pack of a hard restore (AGN-53); `user_id` and
    `org_id` go into the audit.
    """

    checkpoint_location: str = "state"
    hash_limit_bytes: int = DEFAULT_HASH_LIMIT
    hash_outside_folder: bool = False
    followed_sessions: int = 16
    drift_guard: bool = False
    caps: Caps = Factory(Caps)
    caps_per_model: Mapping[str, Caps] = Factory(dict[str, Caps])
    retained_tokens: int = RETAINED_TOKENS
    context_window_tokens: int = 0
    fast_context_window_tokens: int = 0
    compaction_offer: Literal["off", "offer", "automatic"] = "offer"
    hooks: Mapping[str, tuple[CompactionHook, ...]] = Factory(
        dict[str, "tuple[CompactionHook, ...]"]
    )
    codex_timeout_seconds: int = CODEX_TIMEOUT
    mark_before_compaction: bool = True
    file_copies: Literal["off", "replaced", "named"] = "off"
    restore_budget_tokens: int = DEFAULT_BUDGET
    digest_tokens: int = 8000
    hook_digest_tokens: int = 4000
    digest_ignore: tuple[str, ...] = IGNORED
    never_push: tuple[str, ...] = ()
    user_id: str | None = None
    org_id: str | None = None

    def caps_for(self, model: str | None) -> Caps:
        """Return the caps for a session of this model."""
        return self.caps if model is None else self.caps_per_model.get(model, self.caps)


UNREADABLE = Settings(hooks=_UNREADABLE_HOOKS)
"""The settings if the user's choice cannot be read."""

NOT_TOML = "not valid TOML"
UNREAD = "cannot be read"
"""The beginning of a message about the whole file."""
_UNKNOWN = "unknown setting"
_WRONG_HOOKS = "setting 'hooks'"


def what_helps(problem: str, settings: Settings) -> str:
    """Return the remedy for a reported problem, and the effect until then (CKP-12)."""
    stops = settings.hooks == _UNREADABLE_HOOKS
    if problem.startswith((NOT_TOML, UNREAD)):
        named = ", and no compaction starts, since it may name hooks that would stop it"
        return f"Correct the file; until then all defaults apply{named if stops else ''}."
    if problem.startswith(_WRONG_HOOKS):
        return "Correct or remove the hooks; until then no compaction starts."
    if problem.startswith(_UNKNOWN):
        return "Correct its name or remove it; it has no effect."
    return "Correct or remove the setting; until then its default applies."


def ignored_variable(variable: str) -> str:
    """Return the message about a variable that is not a positive whole number (JUN-21)."""
    return f"{variable} is not a positive whole number and is ignored"


def read_settings(text: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of a `config.toml`, and a message for each invalid one."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        # It may name hooks, which could not block anything then.
        settings = UNREADABLE if "hooks" in text else Settings()
        return settings, (f"{NOT_TOML}: {error}",)
    return overridden(Settings(), table)


def overridden(settings: Settings, table: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Return settings with some replaced by name, and a message for each invalid one."""
    problems: list[str] = []
    for name, value in table.items():
        rule = _RULES.get(name)
        if rule is None:
            problems.append(f"{_UNKNOWN} {name!r}")
            continue
        try:
            settings = rule(settings, value)
        except (BadCaps, TypeError, ValueError) as error:
            problems.append(f"setting {name!r}: {error}")
            if rule is _hooks:
                settings = evolve(settings, hooks=_UNREADABLE_HOOKS)
    return settings, tuple(problems)


def with_editor(settings: Settings, table: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Return settings overridden by an editor's, which a workspace may have chosen.

    So `hooks` are left out, since they are programs to run, and `digestIgnore` and `neverPush` add
    names to those in the file and remove none.
    """
    allowed = {name: value for name, value in table.items() if name != "hooks"}
    found, problems = overridden(settings, allowed)
    names = tuple(dict.fromkeys((*settings.digest_ignore, *found.digest_ignore)))
    globs = tuple(dict.fromkeys((*settings.never_push, *found.never_push)))
    return evolve(found, digest_ignore=names, never_push=globs), problems


def _rule(
    field: str,
    fits: Callable[[Any], bool],
    must: str,
    read: Callable[[Any], object] = lambda value: value,
) -> Callable[[Settings, Any], Settings]:

    def rule(settings: Settings, value: Any) -> Settings:  # noqa: ANN401 - as TOML or JSON has it
        if not fits(value):
            message = f"must be {must}"
            raise ValueError(message)
        return evolve(settings, **{field: read(value)})

    return rule


def _choice(field: str, *values: str) -> Callable[[Settings, Any], Settings]:
    *others, last = (f'"{each}"' for each in values)
    return _rule(field, lambda value: value in values, f"{', '.join(others)} or {last}")


def _whole(field: str, least: int, most: float = math.inf) -> Callable[[Settings, Any], Settings]:
    span = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
    must = f"a whole number {span}"
    return _rule(field, lambda value: type(value) is int and least <= value <= most, must)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def _is_text(value: object) -> bool:
    return _is_name(value) and value != ""


def _names(field: str) -> Callable[[Settings, Any], Settings]:
    must = f"a list of texts of at most {_LONGEST_NAME} characters"
    return _rule(field, lambda value: is_list(value) and all(map(_is_text, value)), must, tuple)


def _name(field: str) -> Callable[[Settings, Any], Settings]:
    must = f"a text of at most {_LONGEST_NAME} characters"
    return _rule(field, _is_name, must, lambda value: value or None)


def _truth(field: str) -> Callable[[Settings, Any], Settings]:
    return _rule(field, lambda value: isinstance(value, bool), "true or false")


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


def _hooks(settings: Settings, value: object) -> Settings:
    table = _table(value)
    unknown = sorted(table.keys() - set(HOOK_EVENTS))
    if unknown:
        message = f"unknown event {unknown[0]!r}, not one of {', '.join(HOOK_EVENTS)}"
        raise ValueError(message)
    hooks = {event: _hook_list(each) for event, each in table.items()}
    return evolve(settings, hooks={event: each for event, each in hooks.items() if each})


def _hook_list(value: object) -> tuple[CompactionHook, ...]:
    if not isinstance(value, list):
        raise TypeError("hooks must be a list of tables")
    return tuple(_hook(_table(each)) for each in cast("list[object]", value))


def _hook(table: Mapping[str, object]) -> CompactionHook:
    if not table.keys() <= {"command", "timeoutSeconds", "onFailure"}:
        raise ValueError("a hook has command, timeoutSeconds and onFailure")
    words = table.get("command")
    if not isinstance(words, list) or not words:
        raise TypeError("command must be a list of words, the program first")
    command = tuple(str(word) for word in cast("list[object]", words))
    # We choose its working folder, and a session's folder must not decide which program runs.
    if not os.path.isabs(command[0]):
        raise ValueError("the program of a hook must be an absolute path")
    seconds = table.get("timeoutSeconds", 10)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:  # noqa: PLR2004
        raise ValueError("timeoutSeconds must be above 0 and at most 600")
    policy = table.get("onFailure", "stop")
    if policy not in FAILURE_POLICIES:
        message = f"onFailure must be one of {', '.join(FAILURE_POLICIES)}"
        raise ValueError(message)
    return CompactionHook(command, float(seconds), "continue" if policy == "continue" else "stop")


_RULES: Mapping[str, Callable[[Settings, Any], Settings]] = {
    "checkpointLocation": _choice("checkpoint_location", "state", "beside"),
    "hashLimitBytes": _whole("hash_limit_bytes", 0),
    "hashOutsideFolder": _truth("hash_outside_folder"),
    "followedSessions": _whole("followed_sessions", 0),
    "driftGuard": _truth("drift_guard"),
    "caps": _caps,
    "retainedTokens": _whole("retained_tokens", 1),
    "contextWindowTokens": _whole("context_window_tokens", 0),
    "fastContextWindowTokens": _whole("fast_context_window_tokens", 0),
    "compactionOffer": _choice("compaction_offer", "off", "offer", "automatic"),
    "hooks": _hooks,
    "codexTimeoutSeconds": _whole("codex_timeout_seconds", 1),
    "markBeforeCompaction": _truth("mark_before_compaction"),
    "fileCopies": _choice("file_copies", "off", "replaced", "named"),
    "digestTokens": _whole("digest_tokens", 0, 32_000),
    "hookDigestTokens": _whole("hook_digest_tokens", 0, 32_000),
    "digestIgnore": _names("digest_ignore"),
    "restoreBudgetTokens": _whole("restore_budget_tokens", 0),
    "neverPush": _names("never_push"),
    "userId": _name("user_id"),
    "orgId": _name("org_id"),
}
