"""Fixtures of the tests with the real Codex CLI."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from codex.codex_cli import INSTALL, MODEL, CodexHome, installed
from codex.scripted_model import Answer, ScriptedModel


@pytest.fixture(autouse=True)
def _codex_is_there() -> None:
    if sys.platform == "win32":
        pytest.skip("the scripted commands are written for a POSIX shell")
    if not installed():
        reason = f"the Codex CLI is not installed: {INSTALL}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


class MakeHome(Protocol):
    """Make a home whose model follows a script."""

    def __call__(
        self, *answers: Answer, summaries: tuple[str | Answer, ...] = (), model_name: str = MODEL
    ) -> tuple[CodexHome, ScriptedModel]:
        """Make it."""
        ...


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[MakeHome]:
    """Make homes with their models; the models are closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(
            *answers: Answer, summaries: tuple[str | Answer, ...] = (), model_name: str = MODEL
        ) -> tuple[CodexHome, ScriptedModel]:
            model = stack.enter_context(ScriptedModel(answers, summaries))
            return CodexHome(tmp_path / "lab", model, model_name), model

        yield make
