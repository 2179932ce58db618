"""Whether a text, a file or a command is still in a replacement."""

import pytest

from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.core.losses import account as module
from codex_checkpoints.core.losses.account import held_by

SECRET = "ghp_" + "a1B2" * 9
SEALED = {"type": "compaction", "encrypted_content": "gAAA"}
BASE = "/home/ana/shop"


def lost_text(text: str, *said: str) -> bool | None:
    return held_by([user_message(said)]).lost_text(text)


def lost_file(uri: str, said: str, base: str | None = BASE) -> bool | None:
    return held_by([user_message([said])]).lost_file(uri, base)


@pytest.mark.parametrize(
    "said",
    [
        "Then write the test.",
        "then WRITE\n\tthe   test",
        "- [ ] Write the test (id=s1)",
        "write the\u2028test",
    ],
)
def test_a_text_is_there_whatever_the_white_space_and_the_case(said: str):
    assert lost_text("Write the test", said) is False


def test_a_text_that_goes_over_two_parts_is_there():
    assert lost_text("Write the test", "Write the", "test") is False


@pytest.mark.parametrize("said", ["Rewrite the test", "Write the tests", "The test is written", ""])
def test_a_text_is_there_as_whole_words_alone(said: str):
    assert lost_text("Write the test", said) is True


def test_a_text_in_a_script_without_spaces_is_there_within_another():
    assert lost_text("写测试", "然后写测试吧") is False


def test_a_value_that_was_cut_is_there_where_its_beginning_is():
    assert lost_text("Write the te…", "Write the tests") is False
    assert lost_text("Write the te…", "Write the docs") is True


def test_a_value_without_its_secret_is_there_where_the_secret_is():
    assert lost_text("log in with [redacted] now", f"log in with {SECRET} now") is False


def test_a_text_that_says_nothing_cannot_be_lost():
    assert lost_text("") is False


def test_a_text_is_found_in_whatever_an_item_holds():
    items = [
        {"type": "function_call", "name": "shell", "arguments": '{"cmd":"make all"}'},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Read the docs"}]},
        {"type": "local_shell_call", "action": {"timeout_ms": 5, "user": None}},
    ]

    held = held_by(items)

    assert held.lost_text("make all") is False
    assert held.lost_text("Read the docs") is False


def test_names_of_kinds_and_ids_are_no_text():
    item = {"type": "function_call", "id": "write", "call_id": "tests", "arguments": ""}

    assert held_by([item]).lost_text("write") is True
    assert held_by([item]).lost_text("function_call") is True


def test_of_an_encrypted_replacement_nobody_can_tell_what_is_missing():
    held = held_by([user_message(["fix it in a.py"]), SEALED])

    assert held.sealed
    assert held.lost_text("fix it") is False
    assert held.lost_text("tidy up") is None
    assert held.lost_file("a.py", BASE) is False
    assert held.lost_file("b.py", BASE) is None


def test_of_a_replacement_too_long_to_search_nobody_can_tell_the_rest(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "SEARCHED", 10)

    held = held_by([user_message(["one two three four five"])])

    assert held.lost_text("two") is False
    assert held.lost_text("four") is None
    assert not held.sealed


@pytest.mark.parametrize(
    "said",
    [
        "src/a.py",
        "see src/a.py.",
        "`src/a.py`:10",
        "./src/a.py",
        "/home/ana/shop/src/a.py",
        'file:src/a.py (hash="…")',
        "changed src\\a.py",
    ],
)
def test_a_file_is_there_where_its_path_is(said: str):
    assert lost_file("src/a.py", said) is False


@pytest.mark.parametrize(
    "said",
    [
        "a.py",
        "lib/src/a.py",
        "src/a.pyc",
        "src/a.py.orig",
        "src/a.py/b",
        "other-src/a.py",
        "~/src/a.py",
    ],
)
def test_a_file_is_not_there_where_another_one_is(said: str):
    assert lost_file("src/a.py", said) is True


def test_a_file_outside_the_folder_goes_by_its_whole_path():
    assert lost_file("/etc/hosts", "see /etc/hosts") is False
    assert lost_file("/etc/hosts", "see /chroot/etc/hosts") is True


def test_a_file_of_windows_is_there_in_either_spelling():
    base = "C:\\Users\\ana\\shop"

    assert lost_file("src/a.py", "c:\\users\\ana\\shop\\SRC\\a.py", base) is False
    assert lost_file("src/b.py", "C:\\Users\\ana\\shop\\src\\a.py", base) is True


def test_a_session_without_a_folder_has_names_of_files():
    assert lost_file("a.py", "see a.py", None) is False


def test_what_is_nested_without_end_is_read():
    deep: object = "fix it"
    for _ in range(5_000):
        deep = [deep]

    assert held_by([{"type": "message", "content": deep}]).lost_text("fix it") is False
