"""Whether a text, a file or a command is still in a replacement."""

from collections.abc import Sequence

import pytest

from codex_checkpoints.core.agents.codex.history.items import Item, user_message
from codex_checkpoints.core.agents.codex.history.replacements import all_texts, is_sealed
from codex_checkpoints.core.losses import loss_report as module
from codex_checkpoints.core.losses.loss_report import ReplacementText, held_by

SECRET = "ghp_" + "a1B2" * 9
SEALED = {"type": "compaction", "encrypted_content": "gAAA"}
BASE = "/home/ana/shop"


def held(items: Sequence[Item]) -> ReplacementText:
    texts = (text for item in items for text in all_texts(item))
    return held_by(texts, sealed=any(map(is_sealed, items)))


def lost_text(text: str, *said: str) -> bool | None:
    return held([user_message(said)]).lost_text(text)


def lost_file(uri: str, said: str, base: str | None = BASE) -> bool | None:
    return held([user_message([said])]).lost_file(uri, base)


@pytest.mark.parametrize(
    ("text", "said", "lost"),
    [
        ("Write the test", ["Then write the test."], False),
        ("Write the test", ["then WRITE\n\tthe   test"], False),
        ("Write the test", ["- [ ] Write the test (id=s1)"], False),
        ("Write the test", ["write the\u2028test"], False),
        ("Write the test", ["Write the", "test"], False),  # over two parts
        ("Write the test", ["Rewrite the test"], True),  # as whole words alone
        ("Write the test", ["Write the tests"], True),
        ("Write the test", ["The test is written"], True),
        ("Write the test", [""], True),
        ("写测试", ["然后写测试吧"], False),  # a script without spaces
        ("Write the te…", ["Write the tests"], False),  # a value that was cut
        ("Write the te…", ["Write the docs"], True),
        ("log in with [redacted] now", [f"log in with {SECRET} now"], False),
        ("", [], False),  # what says nothing cannot be lost
    ],
    ids=range(14),
)
def test_text_matches_whole_words_without_white_space_or_case(
    text: str, said: list[str], *, lost: bool
):
    assert lost_text(text, *said) is lost


def test_text_is_found_in_any_part_of_an_item():
    items = [
        {"type": "function_call", "name": "shell", "arguments": '{"cmd":"make all"}'},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Read the docs"}]},
        {"type": "local_shell_call", "action": {"timeout_ms": 5, "user": None}},
    ]

    found = held(items)

    assert found.lost_text("make all") is False
    assert found.lost_text("Read the docs") is False


def test_names_of_kinds_and_ids_are_not_text():
    item = {"type": "function_call", "id": "write", "call_id": "tests", "arguments": ""}

    assert held([item]).lost_text("write") is True
    assert held([item]).lost_text("function_call") is True


def test_missing_text_of_an_encrypted_replacement_is_unknown():
    found = held([user_message(["fix it in a.py"]), SEALED])

    assert found.sealed
    assert found.lost_text("fix it") is False
    assert found.lost_text("tidy up") is None
    assert found.lost_file("a.py", BASE) is False
    assert found.lost_file("b.py", BASE) is None


def test_rest_of_a_replacement_over_the_search_limit_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "SEARCHED", 10)

    found = held([user_message(["one two three four five"])])

    assert found.lost_text("two") is False
    assert found.lost_text("four") is None
    assert not found.sealed


WINDOWS = "C:\\Users\\ana\\shop"


@pytest.mark.parametrize(
    ("uri", "base", "said", "lost"),
    [
        ("src/a.py", BASE, "src/a.py", False),
        ("src/a.py", BASE, "see src/a.py.", False),
        ("src/a.py", BASE, "`src/a.py`:10", False),
        ("src/a.py", BASE, "./src/a.py", False),
        ("src/a.py", BASE, "/home/ana/shop/src/a.py", False),
        ("src/a.py", BASE, 'file:src/a.py (hash="…")', False),
        ("src/a.py", BASE, "changed src\\a.py", False),
        *(("src/a.py", BASE, other, True) for other in ("a.py", "lib/src/a.py", "src/a.pyc")),
        *(("src/a.py", BASE, other, True) for other in ("src/a.py.orig", "src/a.py/b")),
        *(("src/a.py", BASE, other, True) for other in ("other-src/a.py", "~/src/a.py")),
        # outside the folder by its whole path
        ("/etc/hosts", BASE, "see /etc/hosts", False),
        ("/etc/hosts", BASE, "see /chroot/etc/hosts", True),
        # of Windows in either spelling
        ("src/a.py", WINDOWS, "c:\\users\\ana\\shop\\SRC\\a.py", False),
        ("src/b.py", WINDOWS, "C:\\Users\\ana\\shop\\src\\a.py", True),
        ("a.py", None, "see a.py", False),
    ],
)
def test_file_is_found_by_its_own_path_alone(uri: str, base: str | None, said: str, *, lost: bool):
    assert lost_file(uri, said, base) is lost


def test_deep_nesting_is_read():
    deep: object = "fix it"
    for _ in range(5_000):
        deep = [deep]

    assert held([{"type": "message", "content": deep}]).lost_text("fix it") is False
