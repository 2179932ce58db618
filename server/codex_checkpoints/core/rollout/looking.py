"""Tells commands that only look from those that act (rules, "Observations")."""

from __future__ import annotations

import re
from typing import Final

from codex_checkpoints.core.rollout.shell import Part, parts_of

# fmt: off
_LOOKS: Final = frozenset((
    "ls", "dir", "tree", "find", "fd", "rg", "grep", "egrep", "ag", "cat", "head", "tail", "nl",
    "sed", "awk", "wc", "sort", "uniq", "cut", "less", "file", "stat", "du", "df", "pwd", "cd",
    "echo", "printf", "which", "type", "whoami", "date", "env", "printenv", "ps", "true", ":",
    "test", "[", "Get-ChildItem", "Get-Content", "Select-String", "Test-Path", "Get-Location",
))
_GIT_LOOKS: Final = frozenset((
    "status", "diff", "log", "show", "branch", "blame", "rev-parse", "ls-files", "grep", "remote",
    "config",
))
# fmt: on
_LISTS: Final = frozenset(["-a", "-r", "-v", "--list", "--show-current", "get-url"])
_FIND_ACTS: Final = frozenset(["-delete", "-exec", "-execdir", "-ok", "-fprint"])
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SYSTEM: Final = re.compile(r"system\(|>")


def only_looks(script: str) -> bool:
    """Return whether every part of a script only looks; False where it cannot be split."""
    parts = parts_of(script)
    return bool(parts) and all(map(_looks, parts))


def program_of(script: str) -> str:
    """Return the program of the first part that acts, with its first argument; "" if unclear.

    Two runs of one program are compared by this: `pytest`, `npm test`, `python -m pytest`.
    """
    for part in parts_of(script) or ():
        if _looks(part):
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
    if not words:
        return True
    if _writes(part):
        return False
    name, rest = words[0], words[1:]
    match name:
        case "git":
            return _git_looks(rest)
        case "sed":
            return any(word.startswith("-n") or word == "--quiet" for word in rest) and not any(
                word.startswith(("-i", "--in-place")) for word in rest
            )
        case "find":
            return _FIND_ACTS.isdisjoint(rest)
        case "fd":
            return not {"-x", "-X"} & set(rest)
        case "sort":
            return not any(word.startswith("-o") for word in rest)
        case "awk":
            return not any(_SYSTEM.search(word) for word in rest)
        case _:
            return name in _LOOKS


def _command_words(part: Part) -> list[str]:
    """Return the words without assignments, `env NAME=…`, `time` and `sudo` in front."""
    words = [word.text for word in part.words]
    while words and (
        words[0] in {"time", "sudo"}
        or _ASSIGNMENT.match(words[0])
        or (words[0] == "env" and len(words) > 1 and _ASSIGNMENT.match(words[1]))
    ):
        words.pop(0)
    return words


def _git_looks(words: list[str]) -> bool:
    while words and words[0] in {"-C", "-c"}:
        words = words[2:]
    if not words or words[0] not in _GIT_LOOKS:
        return False
    if words[0] == "config":
        return "--get" in words
    if words[0] in {"branch", "remote"}:
        return all(word in _LISTS for word in words[1:2])
    return True


def _writes(part: Part) -> bool:
    """Return whether a part redirects its output into a file; `2>&1` and `/dev/null` are none."""
    into = sum(">" in operator and operator != ">&" for operator in part.operators)
    return into > sum(word.text.startswith("/dev/") for word in part.words)
