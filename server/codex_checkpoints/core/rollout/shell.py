"""What a shell call plainly does: its script, the files it only reads, the patch it only applies.

Everything here is read off the text, nothing is run and nothing is guessed. Splitting a script
into words is the work of `shell_words`, and what one command reads that of `shell_reads`; joining
names to a folder, and whether the call succeeded, are for the caller.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

from codex_checkpoints.core.rollout.patch import BEGIN
from codex_checkpoints.core.rollout.shell_reads import Read, reads_of
from codex_checkpoints.core.rollout.shell_words import Part, Word, parts_of
from codex_checkpoints.values import frozen

__all__ = [
    "Read",
    "ShellPatch",
    "ShellReading",
    "patch_in",
    "patch_in_argv",
    "read_argv",
    "read_script",
    "script_of",
]


@frozen
class ShellReading:
    """What a script plainly reads, and the folder that it changes to before anything else.

    `plain` says that the script does nothing but read these files.
    """

    folder: str | None
    reads: tuple[Read, ...]
    plain: bool


@frozen
class ShellPatch:
    """A patch that is all of a script, and the folder that the script changes to first."""

    folder: str | None
    text: str


_NOTHING: Final = ShellReading(None, (), plain=False)
_POSIX_SHELLS: Final = frozenset({"sh", "bash", "zsh"})
_SCRIPT_OPTION: Final = {"powershell": "-command", "pwsh": "-command", "cmd": "/c"}
_APPLY_PATCH: Final = frozenset({"apply_patch", "applypatch"})
# After a change of folder, or where a part may run never, twice or as something else, a name no
# longer tells which file was read.
_MOVES: Final = frozenset({"cd", "pushd", "popd"})
_FLOW: Final = re.compile(
    r"case|coproc|do|done|elif|else|esac|eval|exec|exit|fi|for|function|if|return|select|then"
    r"|until|while|[{}]|\[\["
)


def script_of(argv: Sequence[str]) -> str:
    """Take the script out of a shell's arguments, or join the words of any other command."""
    program, options = _program(argv), argv[1:]
    if program in _POSIX_SHELLS and len(options) > 1 and options[0] in {"-c", "-lc"}:
        return options[1]
    if wanted := _SCRIPT_OPTION.get(program):
        for place, option in enumerate(options[:-1], start=1):
            if option.lower() == wanted:
                return " ".join(options[place:])
    return shlex.join(argv)


def _program(argv: Sequence[str]) -> str:
    """Name the program of a call without its folder."""
    return re.split(r"[/\\]", argv[0])[-1].lower().removesuffix(".exe") if argv else ""


def read_argv(argv: Sequence[str]) -> ShellReading:
    """Read a call by its arguments; of PowerShell's and cmd's scripts nothing is read."""
    return _NOTHING if _program(argv) in _SCRIPT_OPTION else read_script(script_of(argv))


def read_script(script: str) -> ShellReading:
    """Find the files that a POSIX script plainly reads, and whether that is all it does."""
    parts = parts_of(script)
    if parts is None:
        return _NOTHING
    folder, parts = _leading_folder(parts)
    reads: list[Read] = []
    plain = bool(parts)
    for part in parts:
        found = reads_of(part)
        reads.extend(found)
        plain = plain and bool(found)
        if not found and _leads_away(part):
            break
    return ShellReading(folder, tuple(reads), plain)


def _leads_away(part: Part) -> bool:
    """Tell whether names in later commands may mean something else, or may not be reached."""
    words = [word.text for word in part.words]
    return not _MOVES.isdisjoint(words) or _FLOW.fullmatch("".join(words[:1])) is not None


def patch_in_argv(argv: Sequence[str]) -> ShellPatch | None:
    """Find the patch of a call that only applies one, by itself or through any shell."""
    # A joined call reads like a script, and Codex takes the heredoc form from PowerShell too.
    return patch_in(script_of(argv))


def patch_in(script: str) -> ShellPatch | None:
    """Find the patch of a script that does nothing but apply it."""
    # White space after the last line would hide the delimiter of a heredoc.
    folder, parts = _leading_folder(parts_of(script.rstrip(" \t\n")) or ())
    if len(parts) != 1 or parts[0].then not in {"", "\n"}:
        return None
    match parts[0]:
        case Part((Word(name),), ("<<" | "<<-",), (text,)) if name in _APPLY_PATCH:
            pass
        case Part((Word(name), Word(text, literal=True)), (), ()) if name in _APPLY_PATCH:
            pass
        case _:
            return None
    return ShellPatch(folder, text) if BEGIN in text else None


def _leading_folder(parts: tuple[Part, ...]) -> tuple[str | None, tuple[Part, ...]]:
    """Take a `cd DIR &&` off the front of a script."""
    match parts:
        case (Part((Word("cd"), Word("--"), folder), (), (), "&&"), *_):
            pass
        case (Part((Word("cd"), folder), (), (), "&&"), *_) if not folder.text.startswith("-"):
            pass
        case _:
            return None, parts
    return (folder.text, parts[1:]) if folder.literal and folder.text else (None, parts)
