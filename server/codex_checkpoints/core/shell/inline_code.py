"""Reads code that a command passes to an interpreter: `python -c`, `node -e`, `python - <<EOF`.

Code that imports nothing from the project and neither asserts nor raises verifies nothing: it
prints files (a look) or changes them (a chore).  Any other code is a run of a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from codex_checkpoints.core.fields import names

_LANGUAGES: Final = re.compile(
    r"(?P<python>(?:python|pypy|py)[\d.]*)|(?P<node>node|nodejs|bun|tsx)|(?P<ruby>ruby)|(?P<php>php)"
)
_CODE: Final[Mapping[str, frozenset[str]]] = {
    "python": frozenset(["-c"]),
    "node": frozenset(["-e", "-p", "-pe", "--eval", "--print"]),
    "ruby": frozenset(["-e"]),
    "php": frozenset(["-r"]),
}
"""The options whose value is code."""

_IMPORT: Final[Mapping[str, re.Pattern[str]]] = {
    "python": re.compile(
        r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w., ]+))|;\s*import ([\w., ]+)", re.MULTILINE
    ),
    "node": re.compile(
        r"(?:require|import)\(\s*['\"]([^'\"]+)|\bfrom\s+['\"]([^'\"]+)|import\s+['\"]([^'\"]+)"
    ),
    "ruby": re.compile(r"require(?:_relative)?\s*\(?['\"]([^'\"]+)"),
    "php": re.compile(r"(?:require|include)(?:_once)?\s*\(?['\"]([^'\"]+)"),
}
_PLAIN: Final = names(
    "argparse ast base64 bisect binascii buffer codecs collections copy crypto csv date datetime"
    " difflib fnmatch fs fs/promises functools glob hashlib html importlib importlib.util io"
    " itertools json math os os.path path pathlib platform pprint random re set shutil site stat"
    " string struct sys sysconfig textwrap time tokenize tomllib toml typing unicodedata url util"
    " uuid xml xml.etree yaml zlib"
)
"""Modules for texts and files."""

_RUNS: Final = re.compile(
    r"\bassert\b|\bsubprocess\b|os\.system|child_process|(?<!\.)\b(?:exec|execSync)\(|\bfetch\(|\beval\("
    r"|(?<!re\.)\bcompile\(|WebSocket\(|import_module|ast\.parse\(|\brunpy\b"
)
"""Code that runs something, or asserts it."""

_JUDGES: Final = re.compile(
    r"\braise\b|\bthrow\b|sys\.exit\(|\bSystemExit\b|process\.exit\((?!0?\))"
)
"""Code that reports a failure."""

_WRITES: Final = re.compile(
    r"write_text|write_bytes|\.write\(|writeFile|appendFile|\bopen\([^)]*['\"][wax]b?\+?['\"]"
    r"|rename\(|unlink|rmtree|\bremove\(|mkdir|copyfile|copytree|shutil\.(?:copy|move)|rmSync|cpSync"
    r"|File\.write|file_put_contents"
)


def language_of(name: str) -> str | None:
    """Return the language of an interpreter by its name, None for any other program."""
    found = _LANGUAGES.fullmatch(name)
    return None if found is None else found.lastgroup


def code_in(language: str, words: Sequence[str], fed: Sequence[str]) -> str | None:
    """Return the code in the words or in the text that is fed; None if a file is run."""
    for at, word in enumerate(words):
        if word in _CODE[language]:
            return words[at + 1] if at + 1 < len(words) else ""
        if word == "-":
            return "\n".join(fed)
        if not word.startswith("-"):
            return None
        if word in {"--check", "-l", "-m"}:
            return None
    return "\n".join(fed)


def act_of(language: str, code: str) -> Literal["look", "chore", "check"]:
    """Return the kind of a command that runs this code."""
    if _RUNS.search(code) or not all(map(_is_plain, _imports(language, code))):
        return "check"
    if _WRITES.search(code):
        return "chore"
    return "check" if _JUDGES.search(code) else "look"


def writes(code: str) -> bool:
    """Return whether code may write files."""
    return _WRITES.search(code) is not None


def _imports(language: str, code: str) -> list[str]:
    found = _IMPORT[language].finditer(code)
    listed = (next(filter(None, each.groups()), "") for each in found)
    return [name.split(" as ")[0].strip() for each in listed for name in each.split(",")]


def _is_plain(module: str) -> bool:
    name = module.removeprefix("node:")
    return name in _PLAIN or name.split(".")[0] in _PLAIN
