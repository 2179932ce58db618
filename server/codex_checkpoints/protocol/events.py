"""What the server tells by itself, and what it is told at the start."""

from __future__ import annotations

from typing import Any

from attrs import Factory

from codex_checkpoints.values import frozen


@frozen
class Changed:
    """Sessions that are not what they were; ask again for what is shown.

    `seq` counts this server's notifications from 1; a gap means: ask for everything again.
    `reason` is `rollout`, `workspace`, `memory` or `markers`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


@frozen
class Strayed:
    """Files that Codex edited though neither the plan nor recent work speaks of them.

    Sent only where the setting `driftGuard` asks for it, once for the new records of a session.
    `seq` is that of the session after them.
    """

    session_id: str
    uris: tuple[str, ...]
    seq: int


@frozen
class InitializationOptions:
    """What the client says at the start; `settings` override `config.toml` by name."""

    codex_home: str | None = None
    state_dir: str | None = None
    settings: dict[str, Any] = Factory(dict[str, Any])
