"""Read texts of a commit from the git repository of a folder, with the user's own git.

The repository may be a stranger's.  So git reads no configuration but the repository's own, opens
no connection, and only prints objects: for that it runs no hook, no filter and no pager.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence

from codex_checkpoints.storage.workspace import native

SECONDS = 5.0
"""After this long nothing is read."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ALONE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""A repository with missing objects may name a program that fetches them.  Newer versions of git
obey `GIT_NO_LAZY_FETCH`; older ones obey `GIT_ALLOW_PROTOCOL`, whatever the repository says."""


def texts_at(git: str, folder: str, commit: str, paths: Iterable[str], most: int) -> dict[str, str]:
    """Return the texts of files in a commit, by their paths below a folder.

    Left out are other files, files of more than `most` bytes, and all if git fails.
    """
    if _COMMIT.fullmatch(commit) is None:
        return {}
    asked = {path: os.fsencode(native(f"{commit}:./{path}")) for path in paths if "\n" not in path}
    found: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        heads = _printed(git, folder, "--batch-check", [*asked.values()]).splitlines()
        small = [path for path, head in zip(asked, heads, strict=True) if _size(head) <= most]
        data = _printed(git, folder, "--batch", [asked[path] for path in small])
        for path in small:
            head, _, rest = data.partition(b"\n")
            size = int(_size(head))
            with contextlib.suppress(UnicodeDecodeError):
                found[path] = rest[:size].decode()
            data = rest[size + 1 :]
    return found


def _printed(git: str, folder: str, option: str, names: Sequence[bytes]) -> bytes:
    """Return git's output about some objects, in their order; nothing about none."""
    if not names:
        return b""
    # Windows starts no program without this one.
    kept = {name: value for name in ("SYSTEMROOT",) if (value := os.environ.get(name))}
    done = subprocess.run(  # noqa: S603 - the person's own git
        [git, "--no-pager", "cat-file", option],
        cwd=folder,
        env=kept | _ALONE,
        input=b"".join(name + b"\n" for name in names),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout


def _size(head: bytes) -> float:
    """Return the size of a blob by the line about it; without end for anything else."""
    words = head.split(b" ")
    is_blob = len(words) == 3 and words[1] == b"blob" and words[2].isdigit()  # noqa: PLR2004
    return int(words[2]) if is_blob else float("inf")
