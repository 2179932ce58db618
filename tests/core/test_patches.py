"""The files that a patch names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.patches import PatchedFile
from codex_checkpoints.core.shell.script import files_of
from growth import takes_linear_time

HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def test_patch_names_its_files_in_order():
    text = patch(
        "*** Add File: new.py",
        "+x = 1",
        "*** Update File: old name.py",
        "*** Move to: lib/new name.py",
        "@@ def f():",
        "-a",
        "+b",
        "*** End of File",
        "*** Delete File: gone.py",
        "*** Update File: new.py",
        "@@",
        "+y",
    )

    assert files_of(text) == (
        PatchedFile("new.py", "add", None),
        PatchedFile("old name.py", "update", "lib/new name.py"),
        PatchedFile("gone.py", "delete", None),
        PatchedFile("new.py", "update", None),
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: a", "+*** Add File: x"),  # added
        ("*** Add File: a", "+b\f*** Add File: x\u2028*** Add File: y"),  # mid-line
        ("*** Update File: a", " *** Add File: x"),  # context
        ("*** Update File: a", "@@", " *** End Patch", " b"),  # context of an end
        ("*** Update File: a", "@@", "-*** Move to: x"),  # removed
        ("*** Update File: a", "@@ *** Add File: x"),  # the header of a hunk
        ("*** Add File: a", "*** End Patch", "*** Add File: x"),  # after the end
        ("*** Environment ID: x", "*** Add File: a"),  # an environment
        ("*** Add File:", "*** Add File: a"),  # no name
    ],
)
def test_only_headers_outside_of_content_count(lines: tuple[str, ...]):
    assert [change.path for change in files_of(patch(*lines))] == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "  *** Begin Patch \r\n\t*** Add File: a \r\n+b\r\n*** End Patch",  # white space
        "<<'EOF'\n*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\nEOF\n",  # a heredoc
        "*** Begin Patch\n*** Add File: a\n+b",  # no end
        "\n\n*** Begin Patch\n\n*** Add File: a\n\n*** End Patch",  # empty lines
        # Only an update moves a file.
        patch("*** Move to: x", "*** Add File: a", "*** Move to: y"),
        patch("*** Add File: a", "+b", "*** Move to: "),
    ],
)
def test_white_space_a_heredoc_and_a_move_to_itself_are_skipped(text: str):
    assert files_of(text) == (PatchedFile("a", "add", None),)


def test_file_moves_once_and_text_without_a_begin_is_not_a_patch():
    moved = patch("*** Update File: a", "*** Move to: b", "*** Move to: c")

    assert files_of(moved) == (PatchedFile("a", "update", "b"),)
    for text in ("", "*** Add File: a\n+b", "+*** Begin Patch\n*** Add File: a"):
        assert files_of(text) == ()


@given(st.lists(st.text() | st.tuples(st.sampled_from(HEADERS), st.text()).map("".join)))
def test_no_text_makes_reading_fail(lines: list[str]):
    assert len(files_of(patch(*lines))) <= sum(line.count("*** ") for line in lines)
    assert files_of("\n".join(lines)) == () or any("*** Begin Patch" in line for line in lines)


@pytest.mark.parametrize("line", ["*** Update File: a", "*** Move to: a", "+a", " " * 40])
def test_patch_takes_linear_time(line: str):
    takes_linear_time(files_of, lambda lines: patch(*[line] * lines), first=500)
