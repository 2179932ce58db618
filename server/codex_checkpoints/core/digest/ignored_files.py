"""Finds content of files that are never quoted, by the patterns of the setting `digestIgnore`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from codex_checkpoints.core.shell import posix

_TOKEN: Final = re.compile(r"[^\s\"'`=<>|;&(),\\]+")
_SEPARATOR: Final = re.compile(r"[/\\:]")
_LONGEST_GLOB: Final = 4096
"""A longer pattern may match any name: reading it takes quadratic time."""

_GLOB: Final = re.compile(r"[*?\[]")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""An attribute in a program may look like a file name: `self.key` and `server.key`."""

_QUOTED: Final = re.compile(r"""(?<=["'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?=\\?["'])""")
_READ: Final = re.compile(
    r"\b(?:cat|head|tail|less|more|nl|base64|xxd|source|Get-Content)\s+(?:-\S+\s+)*+([^\s\"'`;|&)]+)"
)
"""A command inside a program, a text or another command."""

_OWN: Final = re.compile(r"(?:self|this|cls)\.")
_STATEMENTS: Final = frozenset(
    ["return", "if", "elif", "while", "for", "const", "let", "var", "await", "assert", "import"]
)
"""The beginnings of a line of a program."""

PATCHED: Final = re.compile(
    r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\]+)|\*\*\* Move to: ([^\n\\]+)"
)
"""The files that a patch names, in plain text or in a call's JSON arguments."""

_PATCH: Final = re.compile(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)

_SEARCHES: Final = frozenset(
    ["rg", "grep", "egrep", "fgrep", "ag", "git", "find", "fd", "echo", "printf"]
)
"""Programs whose first argument is not a file name."""

_FINDERS: Final = frozenset(["find", "fd"])
"""Programs that print names only."""

_IN_FRONT: Final = re.compile(r":|-\d+[-:]")
"""The text after the file name in a line of a search: `.env:3:KEY=…`, `.env-4-KEY=…`."""

_FRONTS: Final = 4
_BEGINS: Final = re.compile(
    r"==> (?P<file>.+) <==\s*|diff -(?P<files>.*)|commit [0-9a-f]{7,40}\b.*"
)
"""A line that starts another file in an output, as `tail` and `diff` print it."""


class Ignoring:
    """Detects paths, commands, patches and lines about files that are never quoted."""

    def __init__(self, patterns: Iterable[str]) -> None:
        known = tuple(patterns)
        found = "|".join(fnmatch.translate(pattern) for pattern in known)
        self._names = re.compile(found or r"(?!)", re.IGNORECASE)
        self._samples = tuple(_GLOB.sub("", pattern) for pattern in known)

    def path(self, path: str) -> bool:
        """Return whether a path names an ignored file."""
        return self._names.match(_SEPARATOR.split(path.strip())[-1]) is not None

    def script(self, script: str) -> bool:
        """Return whether a command, or the arguments of a call, name an ignored file."""
        # The asterisks in a patch's headers are not globs for the shell.
        if self.patch(script):
            return True
        script = _PATCH.sub("", script)
        parts = posix.parts_of(script)
        named = (token for token in _TOKEN.findall(script) if "/" in token or "." in token)
        if parts is None:
            return any(map(self.path, named))
        if any(self.path(token) for token in named if not _ATTRIBUTE.fullmatch(token)):
            return True
        sought = set[str]()
        for part in parts:
            program, *words = [word.text for word in part.words] or [""]
            into = [redirect.target.text for redirect in part.redirects]
            if program in _SEARCHES:
                operands = [word for word in words if not word.startswith("-")]
                behind = 2 if program == "git" else 1
                sought.update(operands[:behind])
                words = [] if program in _FINDERS else operands[behind:]
            elif program in _STATEMENTS or words[:1] == ["="]:
                continue
            elif any(map(self._covers, (*words, *into))):
                return True
            if any(self._file(word.rpartition("=")[2]) for word in (*words, *into)):
                return True
        quoted = (token for token in _QUOTED.findall(script) if token not in sought)
        return any(map(self._file, (*quoted, *_READ.findall(script))))

    def _file(self, name: str) -> bool:
        return self.path(name) and not _OWN.match(name)

    def patch(self, text: str) -> bool:
        """Return whether a patch changes an ignored file."""
        return any(self.path(one or other) for one, other in PATCHED.findall(text))

    def line(self, line: str) -> bool:
        """Return whether a line of a search begins with an ignored file: `.env:3:KEY=…`."""
        return any(
            self.path(line[: found.start()])
            for found in islice(_IN_FRONT.finditer(line), _FRONTS)
            if not _ATTRIBUTE.fullmatch(line[: found.start()].strip())
            or (not line[0].isspace() and not line[found.end() : found.end() + 1].isspace())
        )

    def without(self, output: str) -> str:
        """Return an output without the lines that it attributes to ignored files."""
        return "\n".join(self._shown(output.split("\n")))

    def _shown(self, lines: Iterable[str]) -> Iterator[str]:
        hidden = False
        for line in lines:
            begins = _BEGINS.fullmatch(line)
            if begins is not None:
                hidden = self.path(begins["file"] or "") or self.script(begins["files"] or "")
            if not hidden and not self.line(line):
                yield line

    def _covers(self, word: str) -> bool:
        """Return whether the shell may expand a word to an ignored name: `.e*`."""
        glob = _SEPARATOR.split(word)[-1]
        if _GLOB.search(glob) is None:
            return False
        return len(glob) > _LONGEST_GLOB or any(
            fnmatch.fnmatchcase(sample, glob) for sample in self._samples
        )
