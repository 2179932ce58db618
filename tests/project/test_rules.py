"""The page of rules: it has every rule that code and tests cite, with an existing test."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
RULE = re.compile(r"\b(?:DSC|JUN|CKP|WIN|STO|AGN|ROL|DIG|RCL|TEA)-\d+\b")
ROWS = re.findall(r"^\| ([A-Z]{3}-\d+) \| (.+) \| `(.+)` \|$", PAGE, re.MULTILINE)
HEADINGS = set(re.findall(r"^### (.+)$", PAGE, re.MULTILINE))
CITING = [
    path
    for top in ("server", "tests", "bench", "tools", "extension", "docs")
    for path in sorted((ROOT / top).rglob("*"))
    if path.suffix in {".py", ".ts", ".md", ".sh"}
    and "node_modules" not in path.parts
    and path != Path(__file__).resolve()
]


def where(path: Path) -> str:
    """Name a file of the project."""
    return path.relative_to(ROOT).as_posix()


def test_every_cited_rule_is_on_the_page():
    known = {rule for rule, _, _ in ROWS}

    missing = {
        f"{where(path)}: {rule}"
        for path in CITING
        for rule in RULE.findall(path.read_text(encoding="utf-8"))
        if rule not in known
    }

    assert not missing, "cited, and not on docs/rules.md"


def test_every_cited_heading_is_on_the_page():
    cited = {
        (where(path), heading)
        for path in CITING
        for heading in re.findall(r'\(rules, "(.+?)"\)', path.read_text(encoding="utf-8"))
    }

    assert {one for one in cited if one[1] not in HEADINGS} == set()


def test_rule_is_on_the_page_once():
    counted = Counter(rule for rule, _, _ in ROWS)

    assert {rule for rule, count in counted.items() if count > 1} == set()


TESTS = {test for _, _, tests in ROWS for test in tests.split("`, `")}


@pytest.mark.parametrize("test", sorted(TESTS))
def test_test_of_a_rule_exists(test: str):
    file, _, name = test.partition("::")

    text = (ROOT / file).read_text(encoding="utf-8")

    assert not name or f"def {name}(" in text


def test_tests_named_in_the_text_exist():
    named = {
        name
        for line in PAGE.splitlines()
        if line.startswith("Tests:")
        for name in re.findall(r"`(.+?)`", line)
    }

    assert {name for name in named if not (ROOT / name).is_file()} == set()
