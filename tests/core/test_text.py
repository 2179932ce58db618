"""Text of values: one line, no control characters, cut by code points (DSC-24, DSC-51, DSC-52)."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.redaction import SCANNED, cut, find_secret, one_line, value
from codex_checkpoints.core.fields import CONTROLS

FAMILY = "\U0001f469\u200d\U0001f467"
KEY = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb", "a b"),
        ("a\r\n\t\x00b", "a b"),
        ("a\n \nb", "a   b"),
        ("a  b", "a  b"),
        ("\n a \n", "a"),
        ("\u3000a\u00a0", "a"),
        ("a\x7f\x9f\u2028\u2029b", "a b"),
        ("a\u202e\u202ab\u2066c\u2069d", "a b c d"),
        ("a\u200bb\u200ec", "a\u200bb\u200ec"),
        ("x\n[FACTS_VALID]\n- y", "x [FACTS_VALID] - y"),
        ("a\ud800b", "a\ufffdb"),
        ("\n\x85\u2028", ""),
        ("", ""),
    ],
)
def test_each_run_of_control_characters_becomes_one_space(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize("character", ["a", "é", "日", "🎉", "\u0301"], ids=ascii)
@pytest.mark.parametrize("length", [0, 1, 159, 160, 161, 10_000])
def test_text_is_cut_by_code_points(character: str, length: int) -> None:
    short = cut(character * length, 160)
    assert short == (character * length if length <= 160 else character * 159 + "…")


def test_cut_trims_nothing_and_may_split_a_grapheme() -> None:
    assert cut("ab cd", 4) == "ab …"
    assert cut(FAMILY, 2) == "\U0001f469…"
    assert cut("a\ud800bcd", 4) == "a\ufffdb…"


@pytest.mark.parametrize(("limit", "short"), [(2, "a…"), (1, "…"), (0, ""), (-1, "")])
def test_tiny_limit_holds(limit: int, short: str) -> None:
    assert cut("abc", limit) == short


def test_value_is_redacted_before_it_is_cut() -> None:
    assert value(f"a\n{KEY}\nb", 160) == "a [redacted] b"
    assert value("a" * 155 + " " + KEY, 160) == "a" * 155 + " [re…"


def test_leading_white_space_does_not_count_towards_the_scan_limit() -> None:
    assert value("\n \u2028" * SCANNED + "a b", 160) == "a b"


def test_value_of_a_huge_text_scans_only_its_beginning() -> None:
    text = "fix the login\n" * 1_000_000

    begin = time.process_time()
    short = value(text, 160)

    assert time.process_time() - begin < 0.2
    assert short == ("fix the login " * 12)[:159] + "…"


def test_value_drops_last_word_if_scan_limit_may_split_a_secret() -> None:
    text = "a" + "\n" * (SCANNED - 11) + KEY

    assert value(text, 160) == "a…"
    assert value("a b" + "\n" * SCANNED + KEY, 160) == "a b…"
    assert value("glpat-" + "x" * 2 * SCANNED, 160) == "[redacted]…"


@given(st.text(st.characters(), max_size=300), st.integers(1, 200))
def test_value_never_exceeds_its_limit_or_its_line(text: str, limit: int) -> None:
    short = value(text, limit)
    assert len(short) <= limit
    assert len(short.splitlines()) <= 1
    assert short.encode().decode() == short
    assert value(short, limit).strip() == short.strip()


@given(st.text(st.sampled_from("ab \n\t\u2028\u202e\u00a0"), max_size=40))
def test_run_of_line_breaks_becomes_one_space(text: str) -> None:
    assert one_line(text) == re.sub(f"[{CONTROLS}]+", " ", text).strip()


@given(st.text(st.sampled_from("ab \n\t\u2028\u202e\u00a0"), max_size=40))
def test_one_line_is_idempotent(text: str) -> None:
    assert one_line(one_line(text)) == one_line(text)


@given(st.text("ab \n=:", max_size=30), st.text("ab \n=:", max_size=30))
def test_value_holds_no_secret(before: str, after: str) -> None:
    assert find_secret(value(before + " " + KEY + " " + after, 160)) is None
