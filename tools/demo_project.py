"""The project that the sessions of the demo work on: its files, and how a turn changes them.

The program reads price lists of suppliers, one rule a supplier.  It runs, and so do its tests.
All functions return the new texts of the files that change, by name.
"""

from typing import NamedTuple

Files = dict[str, str]

README, READER, REPORT = "README.md", "pricelist/reader.py", "pricelist/report.py"
READER_TESTS = "tests/test_reader.py"


class Supplier(NamedTuple):
    """A sender of price lists: `oddity` completes "The list has …", `line` is an example."""

    name: str
    oddity: str
    pattern: str
    replacement: str
    line: str


SUPPLIERS = (
    Supplier("Adler", "a tab between the fields", r"\t", ";", "bolt\t0,25"),
    Supplier("Brandt", "a currency sign after each price", r"\s*€$", "", "bolt; 0,25 €"),
    Supplier("Carlsen", "the article number first", r"^\d+;", "", "4711; bolt; 0,25"),
    Supplier("Dorn", "a star before each article", r"^\*", "", "* bolt; 0,25"),
    Supplier("Ehlers", "prices with three decimals", r"(,\d\d)\d$", r"\1", "bolt; 0,250"),
    Supplier("Fabian", "a colon between the fields", r":", ";", "bolt: 0,25"),
    Supplier("Gruber", "a second price, with tax", r"^([^;]*;[^;]*);.*", r"\1", "bolt; 0,25; 0,30"),
    Supplier("Hansen", "article names in quotes", r'"', "", '"bolt"; 0,25'),
    Supplier("Iversen", "the currency before each price", r"EUR", "", "bolt; EUR 0,25"),
    Supplier("Jensen", "a unit after each price", r"/piece$", "", "bolt; 0,25/piece"),
    Supplier("Keller", "an old and a new price", r";[^;]*;", ";", "bolt; 0,20; 0,25"),
    Supplier("Lorenz", "comments that begin with #", r"\s*#.*", "", "bolt; 0,25 # new"),
)

FILES: Files = {
    README: "# pricelist\n",
    "pricelist/__init__.py": '"""Price lists of suppliers."""\n',
    READER: '''\
"""Read a price list: one article a line, fields separated by semicolons."""

import re
from decimal import Decimal

RULES = {
}
"""By supplier: the pattern that is replaced in each line before it is read, and by what."""


def read(text, supplier=""):
    """Return the prices by article."""
    pattern, replacement = RULES.get(supplier, ("$^", ""))
    prices = {}
    for number, line in enumerate(text.splitlines(), start=1):
        article, _, price = re.sub(pattern, replacement, line).partition(";")
        try:
            prices[article.strip()] = Decimal(price.strip().replace(",", "."))
        except ArithmeticError:
            raise ValueError(f"line {number}: no price") from None
    return prices
''',
    REPORT: '''\
"""Say what has changed between two price lists."""


def changes(before, after):
    """Return a line for each article that is new."""
    for article in sorted(after.keys() - before.keys()):
        yield f"{article}: new, {after[article]}"
''',
    READER_TESTS: """\
from decimal import Decimal

import pytest

from pricelist.reader import read

LINES = [
    ("", "bolt; 0,25"),
]


@pytest.mark.parametrize(("supplier", "line"), LINES)
def test_line_of_each_supplier_is_read(supplier, line):
    assert read(line, supplier) == {"bolt": Decimal("0.25")}
""",
}
"""The project before the first session."""

WEBSITE: Files = {
    "public/index.html": """\
<title>Price lists</title>
<script src="menu.js"></script>
<nav id="menu"></nav>
""",
    "public/menu.css": "nav { display: none; }\n",
}
"""Another project; its folder is gone since."""


def with_readme() -> Files:
    """Say what the project is for."""
    return {README: "# pricelist\n\nReads price lists of suppliers, and says what has changed.\n"}


def with_report(*, of_gone: bool) -> Files:
    """Report changed prices; of articles that are gone, too, if asked for."""
    gone = '        elif new is None:\n            yield f"{article}: gone"\n' if of_gone else ""
    kinds = "new, gone or has another price" if of_gone else "new or has another price"
    articles = "before.keys() | after.keys()" if of_gone else "after.keys()"
    return {
        REPORT: f'''\
"""Say what has changed between two price lists."""


def changes(before, after):
    """Return a line for each article that is {kinds}."""
    for article in sorted({articles}):
        old, new = before.get(article), after.get(article)
        if old is None:
            yield f"{{article}}: new, {{new}}"
{gone}        elif old != new:
            yield f"{{article}}: {{old}} -> {{new}}"
'''
    }


def with_rule(files: Files, supplier: Supplier) -> Files:
    """Read the list of a supplier, and test it."""
    key = supplier.name.lower()
    rule = f'    "{key}": (r{_quoted(supplier.pattern)}, r{_quoted(supplier.replacement)}),\n'
    case = f'    ("{key}", {_quoted(supplier.line)}),\n'
    return {
        READER: files[READER].replace("}\n", rule + "}\n", 1),
        READER_TESTS: files[READER_TESTS].replace("]\n", case + "]\n", 1),
    }


def with_supplier(files: Files, supplier: Supplier) -> Files:
    """Name a supplier in the README."""
    heading = "" if "## Suppliers" in files[README] else "\n## Suppliers\n\n"
    line = f"- {supplier.name}: {supplier.oddity}\n"
    return {README: f"{files[README]}{heading}{line}"}


def with_test_of_empty_lines(files: Files) -> Files:
    """Test that empty lines are passed over."""
    test = """

def test_empty_lines_are_passed_over():
    assert read("bolt; 0,25\\n\\nnut; 0,10\\n") == {
        "bolt": Decimal("0.25"),
        "nut": Decimal("0.10"),
    }
"""
    return {READER_TESTS: files[READER_TESTS] + test}


def with_empty_lines(files: Files) -> Files:
    """Pass over empty lines."""
    loop = "    for number, line in enumerate(text.splitlines(), start=1):\n"
    skip = "        if not line.strip():\n            continue\n"
    return {READER: files[READER].replace(loop, loop + skip)}


def without_scripts() -> Files:
    """Make the website work without scripts."""
    return {
        "public/index.html": """\
<title>Price lists</title>
<link rel="stylesheet" href="menu.css">
<nav id="menu"><a href="lists.html">Lists</a></nav>
""",
        "public/menu.css": "nav { display: flex; gap: 1em; }\n",
    }


def _quoted(text: str) -> str:
    """Return a text as a string of Python, in double quotes if it has none itself."""
    shown = text.replace("\t", "\\t")
    return f"'{shown}'" if '"' in text else f'"{shown}"'
