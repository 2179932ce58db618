"""Sentences about restored files."""

import pytest

from codex_checkpoints.core.files.plan import FileState
from codex_checkpoints.core.files.words import LABELS, commands_remark, done_headline, plan_headline


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((0, "", 0), "The session changed no file after that turn."),
        ((1, "", 0), "1 file can be restored."),
        ((2, "a", 0), "2 files can be restored. 1 stays as it is: a."),
        (
            (0, "abcd", 1),
            "No file can be restored. 4 stay as they are: a, b, c, and 1 more. 1 is as it was.",
        ),
        ((0, "", 2), "No file can be restored. 2 are as they were."),
    ],
)
def test_plan_is_counted_in_words(counts: tuple[int, str, int], text: str):
    offered, left, same = counts

    assert plan_headline(offered, list(left), same) == text


def test_three_skipped_files_are_named_with_their_reasons():
    left = {f"{name}.py": "it was changed meanwhile" for name in "abcd"}

    assert done_headline(2, {}) == "2 files restored."
    assert done_headline(1, left).endswith(
        "b.py (it was changed meanwhile), c.py (it was changed meanwhile), and 1 more."
    )


def test_commands_of_unknown_effect_are_counted():
    assert commands_remark(0) is None
    assert commands_remark(2) == "2 commands after that turn may have changed more files."


def test_each_state_has_a_label():
    assert set(LABELS) == set(FileState.__args__)
