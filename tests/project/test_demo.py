"""The demo of `make run` for people without sessions: all of it can be read, without questions."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Make the demo; its CODEX_HOME."""
    home = tmp_path / "codex_home"
    program = ROOT / "tools" / "demo.py"
    subprocess.run([sys.executable, program, home, tmp_path / "pricelist"], check=True)
    return home


def ask(home: Path, *arguments: str) -> str:
    """Ask the command line; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "codex_checkpoints", *arguments, "--codex-home", home, "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "server"), "PYTHONUTF8": "1"},
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout


def test_demo_is_read_without_a_problem_and_has_one_of_each_kind(demo: Path) -> None:
    report: dict[str, Any] = json.loads(ask(demo, "doctor"))
    sessions: list[dict[str, Any]] = json.loads(ask(demo, "sessions"))

    assert (report["sessions"], report["findings"]) == (6, [])
    working = sessions[0]
    assert working["suspectFacts"] == 1
    assert [each["parentSession"] for each in sessions].count(working["sessionId"]) == 1
    assert (working["turns"], working["markers"], working["branches"]) == (40, 1, 1)
    assert sorted(each["compactions"] for each in sessions) == [0, 0, 0, 1, 1, 2]
    assert len({each["cwd"] for each in sessions}) == 2


def test_demo_files_come_back_to_the_marked_turn_and_return(demo: Path) -> None:
    session = json.loads(ask(demo, "sessions"))[0]["sessionId"]
    project = demo.parent / "pricelist"
    before = {path: path.read_text() for path in project.rglob("*.*")}

    to = ("restore-files", session, "--marker", "nine suppliers work")
    done: dict[str, Any] = json.loads(ask(demo, *to))

    assert [row["written"] for row in done["rows"]] == [True, True, True]
    assert (project / "README.md").read_text().count("\n- ") == 8  # the ninth comes a turn later
    reader = (project / "pricelist" / "reader.py").read_text()
    assert "iversen" in reader
    assert "jensen" not in reader
    ask(demo, "undo-restore-files", done["operationId"])
    assert {path: path.read_text() for path in before} == before


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for VS Code is a shell script")
def test_installed_vs_code_is_used(tmp_path: Path) -> None:
    code, vsix, log = tmp_path / "code", tmp_path / "x.vsix", tmp_path / "log"
    code.write_text(f'#!/bin/sh\necho "$*" >>\'{log}\'\necho "code $*"\n')
    code.chmod(0o755)
    vsix.touch()
    session = tmp_path / "home" / "sessions" / "2026" / "11" / "20" / "rollout-a.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"payload": {"cwd": str(tmp_path)}}) + "\n")

    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "run.py", vsix],
        env={"PATH": str(tmp_path), "CODEX_HOME": str(tmp_path / "home")},
        check=True,
        capture_output=True,
        encoding="utf-8",
    )

    says, _, _ = done.stdout.partition("code --force")
    assert "the extension into your VS Code" in says  # before it is done
    assert log.read_text() == f"--force --install-extension {vsix}\n{tmp_path}\n"
