"""The files that are never quoted, by the names that the setting `digestIgnore` has."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from codex_checkpoints.core.rollout import shell

_TOKEN: Final = re.compile(r"[^\s\"'`=<>|;&(),\\]+")
_SEPARATOR: Final = re.compile(r"[/\\:]")
_LONGEST_GLOB: Final = 4096
"""A longer one may stand for any name: to read it takes the square of its length."""

_GLOB: Final = re.compile(r"[*?\[]")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""The name of a file may look like that, and so may one in a program: `server.key`, `self.key`."""

_QUOTED: Final = re.compile(r"""(?<=["'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?=\\?["'])""")
_READ: Final = re.compile(
    r"\b(?:cat|head|tail|less|more|nl|base64|xxd|source|Get-Content)\s+(?:-\S+\s+)*+([^\s\"'`;|&)]+)"
)
"""A command within a program, a text or another command."""

_OWN: Final = re.compile(r"(?:self|this|cls)\.")
_STATEMENTS: Final = frozenset(
    ["return", "if", "elif", "while", "for", "const", "let", "var", "await", "assert", "import"]
)
"""What a line of a program begins with."""

PATCHED: Final = re.compile(
    r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\]+)|\*\*\* Move to: ([^\n\\]+)"
)
"""The files that a patch names, in a text or in the arguments of a call as JSON writes them."""

_PATCH: Final = re.compile(r"\*\*\* Begin Patch.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)

_SEARCHES: Final = frozenset(
    ["rg", "grep", "egrep", "fgrep", "ag", "git", "find", "fd", "echo", "printf"]
)
"""Programs whose first word is no name of a file."""

_FINDERS: Final = frozenset(["find", "fd"])
"""Those that print names alone."""

_IN_FRONT: Final = re.compile(r":|-\d+[-:]")
"""What stands behind the file's name in a line of a search: `.env:3:KEY=…`, `.env-4-KEY=…`."""

_FRONTS: Final = 4
_BEGINS: Final = re.compile(
    r"==> (?P<file>.+) <==\s*|diff -(?P<files>.*)|commit [0-9a-f]{7,40}\b.*"
)
"""A line behind which an output shows another file, as `tail` and `diff` write it."""


class Ignoring:
    """Tells paths, commands, patches and lines that are about files which are never quoted."""

    def __init__(self, patterns: Iterable[str]) -> None:
        known = tuple(patterns)
        found = "|".join(fnmatch.translate(pattern) for pattern in known)
        self._names = re.compile(found or r"(?!)", re.IGNORECASE)
        self._samples = tuple(_GLOB.sub("", pattern) for pattern in known)

    def path(self, path: str) -> bool:
        """Return whether a path names such a file."""
        return self._names.match(_SEPARATOR.split(path.strip())[-1]) is not None

    def script(self, script: str) -> bool:
        """Return whether a command, or the arguments of a call, name such a file."""
        # The stars of a patch's headers are no names for the shell.
        if self.patch(script):
            return True
        script = _PATCH.sub("", script)
        parts = shell.parts_of(script)
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
        """Return whether a patch changes such a file."""
        return any(self.path(one or other) for one, other in PATCHED.findall(text))

    def line(self, line: str) -> bool:
        """Return whether a line of a search names such a file in front: `.env:3:KEY=…`."""
        return any(
            self.path(line[: found.start()])
            for found in islice(_IN_FRONT.finditer(line), _FRONTS)
            if not _ATTRIBUTE.fullmatch(line[: found.start()].strip())
            or (not line[0].isspace() and not line[found.end() : found.end() + 1].isspace())
        )

    def without(self, output: str) -> str:
        """Return an output without its lines from such files, as far as it says whose they are."""
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
        """Return whether the shell may make such a name of a word: `.e*`."""
        glob = _SEPARATOR.split(word)[-1]
        if _GLOB.search(glob) is None:
            return False
        return len(glob) > _LONGEST_GLOB or any(
            fnmatch.fnmatchcase(sample, glob) for sample in self._samples
        )
