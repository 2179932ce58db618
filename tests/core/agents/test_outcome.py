"""How a command ended, in the words of each version."""

import pytest

from codex_checkpoints.core.agents.codex.items import outcome_in, outcome_of
from codex_checkpoints.core.events import UNKNOWN, CommandRun, Outcome


def run(status: str | None, code: int | None, printed: str | None = "x") -> Outcome:
    return outcome_of(CommandRun("c1", ("make",), None, None, status, code, printed))


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        # 0.44
        (
            '{"output":"no\\n","metadata":{"exit_code":2,"duration_seconds":0.1}}',
            Outcome(failed=True, exit_code=2, printed="no\n"),
        ),
        # 0.98
        (
            "Exit code: 0\nWall time: 0.1 seconds\nTotal output lines: 1\nOutput:\nyes\n",
            Outcome(failed=False, exit_code=0, printed="yes\n"),
        ),
        # since 0.1xx
        (
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno\n",
            Outcome(failed=True, exit_code=1, printed="no\n"),
        ),
        # still running
        (
            "Chunk ID: 1\nWall time: 5 seconds\nProcess running with session ID 7\nOutput:\n…",
            Outcome(printed="…"),
        ),
        # until 0.7x
        (
            "failed in sandbox None with execution error: no, exit code: 7, stdout: a\n, stderr: b",
            Outcome(failed=True, exit_code=7, printed="a\n\nb"),
        ),
        (
            "failed in sandbox None with execution error: command timed out",
            Outcome(
                failed=True,
                printed="failed in sandbox None with execution error: command timed out",
            ),
        ),
        (
            "execution error: No such file or directory (os error 2)",
            Outcome(failed=True, printed="execution error: No such file or directory (os error 2)"),
        ),
        (
            "exec_command failed: CreateProcess { message: no }",
            Outcome(failed=True, printed="exec_command failed: CreateProcess { message: no }"),
        ),
        (
            "aborted by user after 1.0s",
            Outcome(failed=True, printed="aborted by user after 1.0s"),
        ),
        ("the execution error: was known", Outcome(printed="the execution error: was known")),
        ("Exit code: 1", Outcome(failed=True, exit_code=1)),
        ('{"output":"yes"}', Outcome(printed="yes")),
        ('{"a":1}', Outcome(printed='{"a":1}')),
        ("{no", Outcome(printed="{no")),
        ("", Outcome(printed="")),
    ],
)
def test_each_version_has_its_own_outcome_format(text: str, outcome: Outcome):
    assert outcome_in((text,)) == outcome


def test_printed_text_is_not_an_outcome_heading():
    text = "Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 1\nOutput:\n"

    assert outcome_in((text,)) == Outcome(
        failed=False, exit_code=0, printed="Exit code: 1\nOutput:\n"
    )


def test_item_has_its_outcome_in_fields():
    assert run("completed", 0) == Outcome(failed=False, exit_code=0, printed="x")
    assert run("failed", 1) == Outcome(failed=True, exit_code=1, printed="x")
    assert run("failed", None, None) == Outcome(failed=True)
    assert run(None, 3).failed is True


@pytest.mark.parametrize("status", ["declined", "in_progress", "inProgress"])
def test_running_command_has_no_outcome(status: str):
    assert run(status, None) == UNKNOWN
