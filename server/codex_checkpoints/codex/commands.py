"""Codex's own commands, as a person types them."""

from __future__ import annotations


def resume(session_id: str) -> str:
    """Return the shell command that goes on with a session.

    An id may come from a file that somebody else wrote, so a shell gets it as one word.
    """
    from shlex import quote  # noqa: PLC0415 - a list of sessions has no commands in it

    return f"codex resume {quote(session_id)}"
