"""Codex's own program and configuration.

`entries` defines our entries; `config` and `hooks` edit the two files, `file_edit` writes them.
`program` calls Codex through `app_server`.
"""

from shlex import quote

SCRATCH = "codex-checkpoints-scratch"
"""The source that we name to Codex for a scratch fork, which it writes into the fork's head."""

IN_SCRATCH = "CODEX_CHECKPOINTS_SCRATCH"
"""The variable by which our own hook knows that Codex works for us, on a fork that is archived."""


def resume(session_id: str) -> str:
    """Return the shell command that resumes a session.

    The id is quoted, since it may come from somebody else's file.
    """
    return f"codex resume {quote(session_id)}"
