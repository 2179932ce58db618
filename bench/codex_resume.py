"""The real Codex resuming a session, to compare with: from `tests/codex`, with a scripted model.

The model answers at once, so what a resume takes is what Codex does with the session file.  It
writes to the file, and it resumes only with the provider that the session had; so it gets a copy.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from make_tree import Truth
from measure import Cost, Wrong, run

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from codex.codex_cli import INSTALL, CodexHome, codex_command, installed
from codex.requests import sent
from codex.scripted_model import Answer, ScriptedModel, say

__all__ = ["INSTALL", "Resume", "installed", "resuming"]

_FLAGS = ("--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
_PROVIDERS = b'"model_provider":"openai"', b'"model_provider":"scripted"'


class Resume:
    """A Codex home that holds a copy of one session, and nothing that Codex made of it."""

    def __init__(self, home: CodexHome, model: ScriptedModel, truth: Truth) -> None:
        """Put the copy there."""
        self._home = home
        self._model = model
        self._truth = truth
        self.forget()

    def forget(self) -> None:
        """Begin anew: the session as it was, without the databases that Codex makes of it."""
        home = self._home.codex_home
        config = (home / "config.toml").read_bytes()
        shutil.rmtree(home)
        _, _, below = self._truth.path.rpartition("/sessions/")
        path = home / "sessions" / below
        path.parent.mkdir(parents=True)
        (home / "config.toml").write_bytes(config)
        with open(self._truth.path, "rb") as session, path.open("wb") as copy:
            copy.write(session.readline().replace(*_PROVIDERS))
            shutil.copyfileobj(session, copy, 1 << 20)

    def first(self) -> Cost:
        """Resume a session that this Codex has never seen."""
        self.forget()
        return self.again()

    def again(self) -> Cost:
        """Resume it with what Codex knows of it by now."""
        self._model.add(Answer(say("So.")))
        command = codex_command("exec", "resume", self._truth.session, *_FLAGS, "And now?")
        cost = run(command, self._home.environment(), str(self._home.project))
        if self._model.compactions:
            raise Wrong("Codex compacted the session by itself")
        return cost

    def sent(self) -> list[Any]:
        """Return what was sent last, without the base instructions."""
        return sent(self._model.turns[-1])


@contextmanager
def resuming(folder: str, truth: Truth) -> Generator[Resume]:
    """Have Codex resume this session in a home of its own, which is removed in the end."""
    root = Path(folder) / "codex"
    try:
        with ScriptedModel(()) as model:
            yield Resume(CodexHome(root, model), model, truth)
    finally:
        shutil.rmtree(root, ignore_errors=True)
