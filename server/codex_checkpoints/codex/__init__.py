"""Codex's own program and configuration: what of ours stands in it, and how to ask.

`entries` says what Codex is to call; `config` and `hooks` put that into the text of its two files
and take it out again, by `spans`; `file_edit` writes a file so that nothing is lost.  `program`
finds Codex and has it list hooks, archive threads and make a summary, by `app_server`.
Session files are the business of `threads`.
"""

SCRATCH = "codex-checkpoints-scratch"
"""The source that we name to Codex for a scratch fork, which it writes into the fork's head."""

IN_SCRATCH = "CODEX_CHECKPOINTS_SCRATCH"
"""The variable by which our own hook knows that Codex works for us, on a fork that is archived."""


def resume(session_id: str) -> str:
    """Return the shell command by which a person goes on with a session.

    An id may come from a file that somebody else wrote, so a shell gets it as one word.
    """
    from shlex import quote  # noqa: PLC0415 - a list of sessions has no commands in it

    return f"codex resume {quote(session_id)}"
