"""Finds the files that a script plainly reads, writes and patches (rules, "Observations").

Nothing is run and nothing is guessed.  The caller joins paths to folders and knows whether the call
succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from attrs import evolve, frozen

from codex_checkpoints.core.fields import content_hash
from codex_checkpoints.core.patches import PatchedFile
from codex_checkpoints.core.shell import powershell
from codex_checkpoints.core.shell.file_arguments import INTO, named_by
from codex_checkpoints.core.shell.file_writers import formatted_by, may_change_files
from codex_checkpoints.core.shell.posix import (
    POSIX_SHELLS,
    POWERSHELLS,
    Read,
    Redirect,
    SimpleCommand,
    Word,
    Write,
    nested_script,
    parts_of,
    program_of,
)

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_MOVE = "*** Move to:"
_KINDS = (
    ("*** Add File:", "add"),
    ("*** Update File:", "update"),
    ("*** Delete File:", "delete"),
)


def files_of(patch: str) -> tuple[PatchedFile, ...]:
    """List the headers of a patch in their order, repetitions included."""
    changes: list[PatchedFile] = []
    # Only LF ends a line in a patch: `splitlines` would also cut an added line at a form feed
    # and take its rest for a header.
    lines = iter(patch.split("\n"))
    # The begin marker may follow the first line of a heredoc.
    any(line.strip() == BEGIN for line in lines)
    added: list[str] = []
    for line in lines:
        if "***" not in line and (not changes or changes[-1].kind != "add"):
            continue
        # In an update a leading space marks context; elsewhere it is white space at a marker.
        if line.startswith(" ") and changes and changes[-1].kind == "update":
            continue
        marker = line.strip()
        if line.startswith("+") and changes and changes[-1].kind == "add":
            added.append(line[1:].removesuffix("\r") + "\n")
            continue
        _close(changes, added)
        if marker == _END:
            break
        target = marker.removeprefix(_MOVE).strip()
        if not marker.startswith(_MOVE):
            changes.extend(_header(marker))
        elif target and changes and changes[-1].kind == "update" and not changes[-1].move_to:
            changes[-1] = evolve(changes[-1], move_to=target)
    _close(changes, added)
    return tuple(changes)


def _close(changes: list[PatchedFile], added: list[str]) -> None:
    """Give an added file, whose lines have ended, the hash of its content."""
    if changes and changes[-1].kind == "add" and changes[-1].added is None:
        changes[-1] = evolve(changes[-1], added=content_hash("".join(added)))
    added.clear()


def _header(marker: str) -> Iterator[PatchedFile]:
    for prefix, kind in _KINDS:
        path = marker.removeprefix(prefix).strip()
        if marker.startswith(prefix) and path:
            yield PatchedFile(path, kind)


@frozen
class ShellReading:
    """The files that a script names plainly, and the folder that it changes to first.

    `patches` are the texts of the patches that it applies.  `plain`: the script does nothing but
    read and write these files, or nothing but apply these patches.  `more`: it may have changed
    files that it does not name.
    """

    folder: str | None
    reads: tuple[Read, ...]
    plain: bool
    writes: tuple[Write, ...] = ()
    patches: tuple[str, ...] = ()
    more: bool = False


_NOTHING: Final = ShellReading(None, (), plain=False)
APPLY_PATCH: Final = frozenset({"apply_patch", "applypatch"})
# After a change of folder, a condition or a loop the folder of a name is unknown.
_MOVES: Final = frozenset({"cd", "pushd", "popd"})
_FLOW: Final = re.compile(
    r"case|coproc|do|done|elif|else|esac|eval|exec|exit|fi|for|function|if|return|select|then"
    r"|until|while|[{}]|\[\["
)
_PRINTS: Final = frozenset({"cat", "echo", "printf", "write-output"})
"""Their redirections are plain writes, and a pipe into one belongs to it."""

_TAKES: Final = frozenset({"tee", "set-content", "out-file"}) | APPLY_PATCH
"""They take their content from a pipe."""

_NO_FILE: Final = re.compile(r"[0-9]+|-|/dev/.*|\$null|nul", re.IGNORECASE)
_HYPHENATED: Final = re.compile(r"[a-z]-[a-z]", re.IGNORECASE)
_CMDLET: Final = re.compile(
    r"\b(?:Get-Content|Set-Content|Out-File|Get-ChildItem|Select-String|Test-Path|Get-Location)\b"
    r"|(?:^|[;|{(=\n])[ \t]*(?:Get|Set|New|Remove|Copy|Move|Rename|Invoke|Start|Stop|Add|Clear"
    r"|Write|Select|Where|ForEach|Sort|Measure|Resolve|Join|Split)-(?!\w*-)[A-Z]\w+\b",
    re.IGNORECASE,
)
"""A cmdlet.  Few scripts have a hyphen between letters, and this is many times slower to search."""

_POWERSHELL: Final = re.compile(r"\s*(?:\$(?:env:)?\w+\s*=\s|@['\"]\r?\n|&\s*['\"])", re.IGNORECASE)
"""How only PowerShell scripts begin: variables, texts of several lines, programs called."""

_HERE_STRING: Final = re.compile(r"@['\"]\r?\n")


def read_script(script: str, program: str = "") -> ShellReading:
    """Find the files that a script reads, writes and patches; `program` is its shell, if known."""
    return (_read_once if len(script) <= _SHORT else _read)(script, program)


def _read(script: str, program: str) -> ShellReading:
    parts = split(script, program)
    if not parts:
        return _NOTHING
    folder, parts = _leading_folder(parts)
    reads: list[Read] = []
    writes: list[Write] = []
    patches: list[str] = []
    plain, more, is_away = bool(parts), False, False
    for number, part in enumerate(parts):
        if is_away:
            more = more or may_change_files(part)
            continue
        before = parts[number - 1] if number and parts[number - 1].then == "|" else None
        feeds = part.then == "|" and _program(*parts[number + 1 : number + 2]) in _TAKES
        found = _effects_of(part, before, feeds=feeds)
        reads += found.reads
        writes += found.writes
        patches += found.patches
        plain = plain and found.plain
        more = more or (not (found.writes or found.patches) and may_change_files(part))
        is_away = not found.plain and _leads_away(part)
    plain = plain and not is_away and not (patches and (reads or writes))
    return ShellReading(folder, tuple(reads), plain, tuple(writes), tuple(patches), more)


def put_back(script: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the folder that a script changes to first, and the paths that git restores there.

    `:/` is everything.  Git restores only files that it tracks.
    """
    folder, parts = _leading_folder(split(script) or ())
    found: list[str] = []
    for part in parts:
        if _leads_away(part):
            break
        match [each.text for each in part.words if each.literal]:
            case ["git", "restore", *words] if not {"--staged", "-S"} & set(words) or (
                {"--worktree", "-W"} & set(words)
            ):
                found += _paths_in(words)
            case ["git", "checkout", *words] if "--" in words or words == ["."]:
                found += words[words.index("--") + 1 :] if "--" in words else words
            case ["git", "reset", *words] if "--hard" in words:
                found.append(":/")
            case _:
                pass
    return folder, tuple(found)


def _paths_in(words: list[str]) -> Iterator[str]:
    """Yield the paths among the words of `git restore`."""
    before = ""
    for word in words:
        if word[:1] != "-" and before not in {"-s", "--source"}:
            yield word
        before = word


def split(script: str, program: str = "") -> tuple[SimpleCommand, ...] | None:
    """Split a script by the rules of its shell, as far as that is known or evident."""
    return (_split_once if len(script) <= _SHORT else _split_all)(script, program)


def _split_all(script: str, program: str) -> tuple[SimpleCommand, ...] | None:
    return _with_nested(_split(script, program))


def _split(script: str, program: str) -> tuple[SimpleCommand, ...] | None:
    if BEGIN in script and not (is_powershell(script, program) and _HERE_STRING.search(script)):
        # White space after the last line would hide the closing word of a heredoc.
        return parts_of(script.rstrip(" \t\n"))
    if program == "cmd":
        return None  # it has its own rules: such a command is only named
    if is_powershell(script, program):
        return powershell.parts_of(script)
    return parts_of(script)


def is_powershell(script: str, program: str = "") -> bool:
    """Return whether a script is a PowerShell script, as far as that is known or evident."""
    if program in POWERSHELLS or _POWERSHELL.match(script):
        return True
    return bool(_HYPHENATED.search(script) and _CMDLET.search(script))


def _with_nested(
    parts: tuple[SimpleCommand, ...] | None, depth: int = 3
) -> tuple[SimpleCommand, ...] | None:
    """Return parts with the parts of a nested `bash -lc SCRIPT` in its place.

    A nested script that changes the folder is only followed if no command comes after it.
    """
    if parts is None or not depth or not any(each.name in _SHELLS for each in parts):
        return parts
    found: list[SimpleCommand] = []
    for number, part in enumerate(parts):
        inner = _nested(part, depth)
        is_last = number + 1 == len(parts)
        if not inner or not (is_last or not any(map(_leads_away, inner))):
            found.append(part)
            continue
        ends = evolve(inner[-1], then=part.then)
        found += (evolve(each, group=part.group) for each in (*inner[:-1], ends))
    return tuple(found)


def _nested(part: SimpleCommand, depth: int) -> tuple[SimpleCommand, ...] | None:
    """Return the parts of the script that a shell gets as a word, None for any other part."""
    if part.name not in _SHELLS or part.operators or part.heredocs or writes_into(part):
        return None
    if not all(word.literal for word in part.words):
        return None
    argv = [word.text for word in part.words]
    script = nested_script(argv)
    return None if script is None else _with_nested(_split(script, program_of(argv)), depth - 1)


_SHELLS: Final = POSIX_SHELLS | POWERSHELLS | {f"{each}.exe" for each in POWERSHELLS}
_SHORT: Final = 4096
_split_once = lru_cache(32)(_split_all)
_read_once = lru_cache(512)(_read)
"""A command is examined for several purposes, and a session runs the same ones again."""


def writes_into(part: SimpleCommand) -> tuple[Redirect, ...]:
    """Return the redirections of a part into files, without `2>&1` and `/dev/null`."""
    return tuple(
        each
        for each in part.redirects
        if each.operator in INTO and _NO_FILE.fullmatch(each.target.text) is None
    )


def _effects_of(part: SimpleCommand, before: SimpleCommand | None, *, feeds: bool) -> ShellReading:
    """Return the effects of one part; `before` is piped into it; `feeds`: it is piped itself."""
    if part.operators:
        return _NOTHING
    into = writes_into(part)
    writes = tuple(Write(each.target.text) for each in into if each.target.literal)
    patch = _patch_of(part, before) if _program(part) in APPLY_PATCH else None
    if patch is not None:
        return ShellReading(None, (), not into, writes, (patch,))
    prints = part.name.lower() in _PRINTS
    reads, more = named_by(part)
    is_plain = bool(reads or more) and (prints or part.name == "tee" or not into)
    is_plain = is_plain and not formatted_by(part.words)
    is_plain = is_plain or (prints and bool(into or feeds))
    literal = len(writes) == len(into)
    return ShellReading(None, reads, is_plain and literal, (*writes, *more))


def _program(*parts: SimpleCommand) -> str:
    """Return the name of a command without the ending that Windows gives to programs."""
    return re.sub(r"\.(?:exe|bat|cmd)$", "", parts[0].name) if parts else ""


def _patch_of(part: SimpleCommand, before: SimpleCommand | None) -> str | None:
    """Return the patch that a part applies: from a heredoc, its one word, or a pipe."""
    text = ""
    match part.words:
        case (_, Word(text, literal=True)) if not part.heredocs:
            pass
        case (_,) if part.heredocs:
            text = part.heredocs[-1]
        case (_,) if before is not None and not before.redirects and before.name in _PRINTS:
            last = before.words[-1]
            text = before.heredocs[-1] if before.heredocs else last.text if last.literal else ""
        case _:
            pass
    return text if BEGIN in text else None


def _leads_away(part: SimpleCommand) -> bool:
    """Return whether the names in later commands are uncertain after this one."""
    words = [word.text for word in part.words]
    return not _MOVES.isdisjoint(words) or _FLOW.fullmatch("".join(words[:1])) is not None


def _leading_folder(
    parts: tuple[SimpleCommand, ...],
) -> tuple[str | None, tuple[SimpleCommand, ...]]:
    """Return the folder of a leading `cd DIR &&`, and the rest of the script."""
    match parts:
        case (SimpleCommand((Word("cd"), Word("--"), folder), (), (), (), "&&"), *_):
            pass
        case (SimpleCommand((Word("cd"), folder), (), (), (), "&&"), *_) if folder.text[:1] != "-":
            pass
        case _:
            return None, parts
    # In a subshell the folder applies to its own parts only.
    is_followed = folder.literal and folder.text and parts[0].group in {0, parts[-1].group}
    return (folder.text, parts[1:]) if is_followed else (None, parts)


def inside(folder: str | None, deeper: str | None) -> str | None:
    """Return the folder after `cd deeper` in `folder`."""
    if deeper is None or folder is None:
        return deeper if folder is None else folder
    if deeper.startswith(("/", "\\")) or deeper[1:3] in {":\\", ":/"}:
        return deeper
    return f"{folder}/{deeper}"
