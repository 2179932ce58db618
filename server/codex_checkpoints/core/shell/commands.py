"""Decides the kind of a command (a look, a chore or a check) and which runs are of one program.

This is the only place that decides it (rules, "Observations"); `simple_commands` does it for one
part of a script.  A script has the kind of its most telling part: a check before a chore before a
look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from codex_checkpoints.core.fields import names
from codex_checkpoints.core.shell import inline_code, simple_commands
from codex_checkpoints.core.shell.posix import SimpleCommand
from codex_checkpoints.core.shell.script import APPLY_PATCH, is_powershell, split, writes_into
from codex_checkpoints.core.shell.simple_commands import Act, act_of_words, name_of, plain_words

_KEPT = 512
"""Size of the caches of classified scripts: a session runs the same ones again."""

_SHORT: Final = 4096
"""The code points of a script that is kept in them."""

_PLAINLY: Final = re.compile(
    r"(?:ls|rg|grep|wc|pwd|git (?:status|diff|log|show))"
    r"(?: (?:[\w./:=,@%+ -]|'[^']*'|\"[^\"$`\\]*\")*+)?(?:\| (?:head|tail|wc)(?: -n ?\d+| -\w+)?)?",
    re.ASCII,
)
_ENDED: Final = names(") ;; ;& ;;& << # '")
"""Operators at which splitting may have ended: more commands may follow."""

_FIRST_WORDS: Final = re.compile(
    r"(?:^|[\n;&|({])\s*([^\s;&|(){}'\"`$<>]+)((?:[ \t]+[^\s;&|(){}]+)*)"
)
_VERIFY: Final = names(
    "pytest npm npx yarn pnpm bun cargo go make tsc eslint jest vitest dotnet mvn gradle ruff"
    " mypy tox node python python3 py php ruby rspec phpunit"
)
"""Programs that verify something, used if a script cannot be split."""

_IN_BLOCK: Final = re.compile(rf"[{{;]\s*&?\s*(?:{'|'.join(sorted(_VERIFY))})\b")
_SUBSTITUTED: Final = re.compile(r"(?<!\w)[^\WA-Za-z_]*+[A-Za-z_]\w*+=\"?\$\(([^()]{1,4096})\)")
"""It begins where a word does: tried at each letter, a long name took a minute."""

_MOST_WORDS: Final = 64
"""Number of commands of an unsplittable script that are examined."""


def act_of(script: str) -> Act:
    """Return the kind of a script; if it cannot be split, from the names in it."""
    return (_act_once if len(script) <= _SHORT else _act)(script)


def _act(script: str) -> Act:
    parts = split(script)
    is_posix = not is_powershell(script)
    found = {_act_of_part(part, is_posix=is_posix) for part in parts or ()}
    found = found or _roughly(script) or {"chore"}
    parts = parts or ()
    found |= {act_of(inner) for inner in _SUBSTITUTED.findall(script)}
    if not is_posix and _IN_BLOCK.search(script):
        found.add("check")
    if is_posix and any(_ENDED & set(part.operators) for part in parts):
        found |= {"chore", *_roughly(script)}
    return "check" if "check" in found else "chore" if "chore" in found else "look"


_act_once = lru_cache(_KEPT)(_act)


def only_looks(script: str) -> bool:
    """Return whether every part of a script only looks; False if it cannot be split."""
    return act_of(script) == "look" and bool(split(script))


def is_check(script: str, *, failed: bool | None = None) -> bool:
    """Return whether a command verified something: a check, or a chore that failed.

    A look that failed does not count: a search without a hit and a missing file say nothing about
    the project.
    """
    act = act_of(script)
    return act == "check" or (act == "chore" and bool(failed) and not _IDLE.match(script))


_IDLE: Final = re.compile(r"\s*(?:kill|pkill|killall|sleep|wait|fuser|taskkill)\b")
"""Chores whose failure says nothing: the process had already ended."""


def plainly_looks(script: str) -> bool:
    """Return whether a script only looks and names no file that was read, by its form alone."""
    return _PLAINLY.fullmatch(script) is not None


def _act_of_part(part: SimpleCommand, *, is_posix: bool) -> Act:
    found = simple_commands.act_of(part)
    unclear = is_posix and (part.operators or part.group)
    if found == "look" and (unclear or writes_into(part)):
        return "chore"
    return found


def _roughly(script: str) -> set[Act]:
    """Return the kinds of the commands of an unsplittable script, from the names in it."""
    found = set[Act]()
    for number, (name, rest) in enumerate(_FIRST_WORDS.findall(script)):
        if number == _MOST_WORDS:
            break
        words, _ = plain_words([name, *rest.split()])
        if words and (number == 0 or name_of(words[0]) in _VERIFY):
            found.add(act_of_words(words))
    return found


# --- which runs are of one program ---------------------------------------------------------------

_NAMED_BY_FILE: Final = re.compile(r"(?:python|pypy)[\d.]*|node|ruby|perl|php|(?:ba|z|da)?sh")
_SELECT: Final = names(
    "-p --package --project --workspace -w --filter -F --manifest-path --test --bin --example"
    " --lib -k -t -m --grep -run --run -C --prefix --dir --features --target --config -c -f"
    " --file"
)
"""Options that select a part of a project."""


def program_of(script: str) -> str:
    """Return the program that a script checks with, and its operands; "" if unclear.

    A script with several checks has them all.
    """
    found = _programs(script)
    return " && ".join(" ".join(each) for each in found) if all(found) else ""


def covering(script: str) -> tuple[str, ...]:
    """Return the programs whose success implies the success of a script.

    `pytest` also runs the tests of `pytest tests/test_one.py`.
    """
    found = _programs(script)
    if len(found) != 1 or not found[0]:
        return (program_of(script),)
    name, *pointed_at = found[0]
    return (program_of(script), name) if pointed_at else (name,)


def passed_by(script: str) -> tuple[str, ...]:
    """Return the programs that passed when a script did: each of `a && b`, the last of `a; b`."""
    whole = program_of(script)
    if not whole:
        return ()
    parts = split(script) or ()
    each = [" ".join(one) for one in _programs(script)]
    if all(part.then in {"&&", ""} for part in parts[:-1]):
        return tuple(dict.fromkeys((*each, whole)))
    return (whole, each[-1]) if len(each) > 1 else (whole,)


@lru_cache(64)
def _programs(script: str) -> tuple[tuple[str, ...], ...]:
    """Return each check as its program and its operands; empty if that is unclear."""
    parts = split(script)
    if parts is None or (is_powershell(script) and any("{" in each.operators for each in parts)):
        return ((),)  # the commands of a block, and how often they run, are unclear
    programs: list[tuple[str, ...]] = []
    within: list[str] = []
    for part in parts:
        if part.name in {"cd", "pushd", "set-location"}:
            within.append(" ".join(word.text for word in part.words[1:]))
        elif _act_of_part(part, is_posix=True) == "check" and part.name not in APPLY_PATCH:
            found = () if part.operators else _program(part)
            front = f"{' '.join(within)}: " if within and found else ""
            programs.append((f"{front}{found[0]}", *found[1:]) if found else ())
    return tuple(programs)


def _program(part: SimpleCommand) -> tuple[str, ...]:
    words, _ = plain_words([word.text for word in part.words])
    if not words or not all(word.literal for word in part.words):
        return ()
    name, rest = re.split(r"[/\\]", words[0])[-1], words[1:]
    is_module = rest[:1] == ["-m"]
    if _NAMED_BY_FILE.fullmatch(name) and not is_module:
        # The program is the script that it runs, which is unclear for `python -` and `bash -c`.
        is_file = rest[:1] and rest[0][:1] != "-"
        return (f"{name} {rest[0]}", *_pointed_at(rest[1:])) if is_file else ()
    head = [name]
    if is_module:
        head, rest = [name, *rest[:2]], rest[2:]
    elif inline_code.language_of(name) is None:
        rest, flags = list(rest), list[str]()
        while rest and rest[0][:1] in {"-", "+"} and rest[0] not in _SELECT:
            flags.append(rest.pop(0))
        taken = 2 if rest[:1] and rest[0] in {"run", "exec", "compose", "run-script"} else 1
        while taken and rest and re.fullmatch(r"[A-Za-z][\w:-]*", rest[0]):
            head.append(rest.pop(0))
            taken -= 1
            while taken and rest and rest[0][:1] == "-" and rest[0] not in _SELECT:
                flags.append(rest.pop(0))
        rest = rest if head[1:] else [*flags, *rest]
    return (" ".join(head), *_pointed_at(rest))


def _pointed_at(words: list[str]) -> Iterator[str]:
    """Yield the operands among some words, and the options that select something."""
    selects = False
    for word in words:
        if (
            selects
            or word in _SELECT
            or (word[:1] != "-" and "=" not in word)
            or word.split("=")[0] in _SELECT
        ):
            yield word
        selects = word in _SELECT
