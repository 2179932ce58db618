"""The commands that a person is told to type next, for the folders that the last one was about."""

from __future__ import annotations

import re

from codex_checkpoints.values import frozen

_OF_OURS = re.compile(r"`codex-checkpoints ([^`]*)`")


@frozen
class Named:
    """The folders that the command line named, absolute; None for one that it did not name.

    What the environment names counts for the next command as well, and need not be said again.
    """

    codex_home: str | None = None
    state_dir: str | None = None

    def ours(self, command: str) -> str:
        """Return a command of ours with the same folders, each as one word of a shell."""
        from shlex import quote  # noqa: PLC0415 - few answers have commands in them

        options = (("--codex-home", self.codex_home), ("--state-dir", self.state_dir))
        named = "".join(f" {option} {quote(folder)}" for option, folder in options if folder)
        return f"codex-checkpoints {command}{named}"

    def codex(self, command: str) -> str:
        """Return a command of Codex's, which takes its home from the environment alone."""
        from shlex import quote  # noqa: PLC0415 - few answers have commands in them

        home = self.codex_home
        return f"CODEX_HOME={quote(home)} {command}" if home else command

    def within(self, sentence: str) -> str:
        """Return a sentence of ours whose commands, in backticks, have the same folders."""

        def whole(found: re.Match[str]) -> str:
            return found[0] if "--codex-home" in found[1] else f"`{self.ours(found[1])}`"

        return _OF_OURS.sub(whole, sentence)


NOTHING_NAMED = Named()
