"""Where changes make no event, so that one has to look: shares, and folders of another system."""

from __future__ import annotations

import os
import re
import sys

from codex_checkpoints.watch.wishes import is_at_or_below

_SILENT_FILE_SYSTEMS = re.compile(
    r"nfs\d?|cifs|smb.*|9p|drvfs|vboxsf|fuse\.(?:sshfs|vmhgfs-fuse)", re.IGNORECASE
)
_WSL_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")


def sends_no_events(path: str, mounts: str, release: str) -> bool:
    """Tell from `/proc/mounts` and the kernel's release whether changes go unnoticed.

    Elsewhere than on Linux only Windows' network paths are known; the setting is for the rest.
    """
    if path.startswith("\\\\"):
        return True
    if "microsoft" in release.lower() and _WSL_DRIVE.match(path):
        return True
    nearest, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:  # noqa: PLR2004 - device, folder, type
            continue
        folder = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        if is_at_or_below(folder, path) and len(folder) >= len(nearest):
            nearest, kind = folder, fields[2]
    return _SILENT_FILE_SYSTEMS.fullmatch(kind) is not None


def system() -> tuple[str, str]:
    """Return what is mounted where, and the kernel's release; empty where it need not be known."""
    if sys.platform != "linux":
        return "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            return mounts.read(), os.uname().release
    except OSError:
        return "", os.uname().release
