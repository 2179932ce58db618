"""Which edits neither the plan nor recent work speaks of."""

import pytest

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    ArtifactKind,
    Checkpoint,
    Evidence,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.service.reading.checkpoints import straying


def checkpoint(
    *steps: str,
    task: str | None = None,
    done: str = "",
    files: tuple[str, ...] = (),
    commands: tuple[str, ...] = (),
) -> Checkpoint:
    """Return what a session was about, with these open steps and recent artifacts."""
    user = Evidence("user", "m1")
    kinds: dict[str, ArtifactKind] = {}
    kinds.update(dict.fromkeys(files, "file"))
    kinds.update(dict.fromkeys(commands, "command"))
    told = [*(Step(f"s{n}", text) for n, text in enumerate(steps)), Step("done", done)]
    return Checkpoint(
        seq=9,
        task=None if task is None else Task(task, user),
        plan=Plan(tuple(told), {step.id: step.id == "done" for step in told}),
        decisions=(),
        artifacts={uri: Artifact(uri, kind, None, 3) for uri, kind in kinds.items()},
        facts={},
        recent_artifacts=tuple(kinds),
    )


WORK = checkpoint(
    "Write the refresh test",
    "Update CHANGES.md",
    task="Add token refresh to the login flow",
    done="Look at the mailer",
    files=("src/auth.py", "setup.cfg"),
    commands=("sed -n 1,40p lib/clock.py",),
)


@pytest.mark.parametrize(
    "uri",
    [
        "src/auth.py",  # recent
        "src/session.py",  # beside a recent file
        "tests/test_refresh.py",  # a word of a step
        "CHANGES.md",  # a step names it
        "web/login.html",  # a word of the task
        "lib/clock.py",  # a recent command names it
        "/elsewhere/Refresh.py",
    ],
)
def test_edit_named_by_the_plan_or_recent_work_is_related(uri: str):
    assert straying(WORK, [uri]) == ()


@pytest.mark.parametrize(
    "uri",
    [
        "docs/install.md",
        "LICENSE",  # the top folder holds a recent file, and everything else as well
        "src/deep/other.py",
        "tests/test_mailer.py",  # that step is done
        "lib/add.py",  # a short word says nothing
        "/etc/hosts",
    ],
)
def test_unnamed_edit_counts_as_drift(uri: str):
    assert straying(WORK, [uri]) == (uri,)


def test_each_file_is_reported_once_in_the_order_of_the_edits():
    assert straying(WORK, ["z/z", "a/a", "src/auth.py", "z/z"]) == ("z/z", "a/a")


def test_session_without_plan_and_work_has_no_drift():
    assert straying(checkpoint(task="Hello"), ["docs/install.md"]) == ()
