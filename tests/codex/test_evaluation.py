"""The evaluation that a person may run: it works, and its verdict follows from the answer."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from codex.codex_cli import CodexHome, codex_command
from codex.conftest import MakeHome
from codex.generations import SECOND, written_by
from codex.product import environment
from codex.scripted_model import Answer, say
from codex.test_compaction_forms import put
from rollouts import THREAD

pytestmark = pytest.mark.codex

SCRIPT = Path(__file__).parents[1] / "evaluation" / "handoff.py"


def evaluated(home: CodexHome) -> tuple[int, dict[str, str]]:
    """Run it with the Codex of the tests; its exit code, and what it said of each question."""
    codex = home.root / "codex"
    codex.write_text(f'#!/bin/sh\nexec {shlex.join(codex_command())} "$@"\n', encoding="utf-8")
    codex.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), THREAD, "--codex", str(codex)],
        cwd=home.project,
        env=home.environment() | environment(home),
        stdout=subprocess.PIPE,
        check=False,
    )
    lines = (line.split(maxsplit=1) for line in done.stdout.decode().splitlines())
    return done.returncode, {line[0]: line[1] for line in lines}


def test_complete_answer_passes(scripted: MakeHome) -> None:
    told: dict[str, object] = {"task": SECOND, "nextStep": "Fix it", "files": []}
    home, model = scripted(Answer(say(f"Here it is: {json.dumps(told)}")))
    put(home, written_by("0.169"))

    code, said = evaluated(home)

    assert (code, said) == (0, {"task": "100%", "nextStep": "100%", "files": "100%"})
    assert len(model.turns) == 1


def test_missing_parts_of_an_answer_are_named(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say(json.dumps({"task": "Something else", "nextStep": "Fix it"}))))
    put(home, written_by("0.169"))

    code, said = evaluated(home)

    assert code == 1
    assert said["task"] == f"0%  {SECOND}"
    assert said["nextStep"] == "100%"
