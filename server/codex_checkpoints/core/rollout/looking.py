"""Tells commands that only look from those that act (rules, "Observations")."""

from __future__ import annotations

import re
from typing import Final

from codex_checkpoints.core.rollout.script import APPLY_PATCH, split, writes_into
from codex_checkpoints.core.rollout.shell import Part

# fmt: off
_LOOKS: Final = frozenset((
    "ls", "dir", "tree", "find", "fd", "rg", "grep", "egrep", "ag", "cat", "head", "tail", "nl",
    "sed", "awk", "wc", "sort", "uniq", "cut", "less", "file", "stat", "du", "df", "pwd", "cd",
    "echo", "printf", "which", "type", "whoami", "date", "env", "printenv", "ps", "true", ":",
    "test", "[", "get-childitem", "get-content", "select-string", "test-path", "get-location",
))
_GIT_LOOKS: Final = frozenset((
    "status", "diff", "log", "show", "branch", "blame", "rev-parse", "ls-files", "grep", "remote",
    "config",
))
# fmt: on
_PLAINLY: Final = re.compile(
    r"(?:ls|rg|grep|wc|pwd|git (?:status|diff|log|show))"
    r"(?: (?:[\w./:=,@%+ -]|'[^']*'|\"[^\"$`\\]*\")*+)?(?:\| (?:head|tail|wc)(?: -n ?\d+| -\w+)?)?",
    re.ASCII,
)
_LISTS: Final = frozenset(["-a", "-r", "-v", "--list", "--show-current", "get-url"])
_FIND_ACTS: Final = ("-delete", "-exec", "-ok", "-fprint", "-fls")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SYSTEM: Final = re.compile(r"system\(|>")


def only_looks(script: str, program: str = "") -> bool:
    """Return whether every part of a script only looks; False where it cannot be split.

    `program` is its shell, if that is known.
    """
    parts = split(script, program)
    return bool(parts) and all(map(_looks, parts))


def plainly_looks(script: str) -> bool:
    """Return whether a script only looks and names no file that was read, by its form alone."""
    return _PLAINLY.fullmatch(script) is not None


def program_of(script: str) -> str:
    """Return the program of the first part that acts, with its first argument; "" if unclear.

    Two runs of one program are compared by this: `pytest`, `npm test`, `python -m pytest`.
    """
    for part in split(script) or ():
        if _looks(part) or part.name in APPLY_PATCH:
            continue
        words = _command_words(part)
        if not words:
            continue
        name = re.split(r"[/\\]", words[0])[-1]
        # `cargo test`, `npm run lint`, `python -m pytest`; but `pytest tests/test_one.py`.
        taken = 3 if words[1:2] in (["-m"], ["run"], ["exec"]) else 2
        plain = [word for word in words[1:taken] if "/" not in word and "." not in word]
        return " ".join([name, *(word for word in plain if word == "-m" or word[:1] != "-")])
    return ""


def _looks(part: Part) -> bool:
    words = _command_words(part)
    if part.operators or writes_into(part):
        return False
    if not words:
        return True
    name, rest = words[0], words[1:]
    match name:
        case "git":
            return _git_looks(rest)
        case "sed":
            return _sed_looks(rest)
        case "find":
            return not any(word.startswith(_FIND_ACTS) for word in rest)
        case "fd":
            return not {"-x", "-X"} & set(rest)
        case "sort":
            return not any(word.startswith("-o") for word in rest)
        case "awk":
            return not any(_SYSTEM.search(word) for word in rest)
        case _:
            return (name.lower() if "-" in name else name) in _LOOKS


def _command_words(part: Part) -> list[str]:
    """Return the words without assignments, `env NAME=…`, `time` and `sudo` in front."""
    words = [word.text for word in part.words]
    while words and (
        words[0] in {"time", "sudo"}
        or _ASSIGNMENT.match(words[0])
        or (words[0] == "env" and len(words) > 1 and words[1][:1] != "-")
    ):
        words.pop(0)
    return words


def _sed_looks(words: list[str]) -> bool:
    """Return whether `sed` is quiet and changes no file."""
    letters = "".join(word[1:] for word in words if re.match("-[A-Za-z]", word))
    quiet = "n" in letters or not {"--quiet", "--silent"}.isdisjoint(words)
    return quiet and "i" not in letters and not any(word.startswith("--in-place") for word in words)


def _git_looks(words: list[str]) -> bool:
    while words and words[0] in {"-C", "-c"}:
        words = words[2:]
    if words[:1] == ["--no-pager"]:
        words = words[1:]
    if not words or words[0] not in _GIT_LOOKS:
        return False
    if words[0] == "config":
        return "--get" in words
    if words[0] in {"branch", "remote"}:
        named = [word for word in words[2:] if word[:1] == "-"]
        return all(word in _LISTS for word in (*words[1:2], *named))
    return True
