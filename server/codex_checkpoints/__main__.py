"""The command `codex-checkpoints`, also as `python -m codex_checkpoints`.

Codex waits for `mcp` and `hook`, so these are loaded alone.  So is the answer to `--version`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> int:
    """Run one command; return the exit code."""
    try:
        return _run()
    except KeyboardInterrupt:
        # Ctrl+C came while modules were loading; a hook must not fail even then.
        return 0 if sys.argv[1:2] == ["hook"] else 130


def _run() -> int:
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from codex_checkpoints import __version__

        sys.stdout.write(f"codex-checkpoints {__version__}\n")
        return 0
    if sys.argv[1:2] != ["serve"]:
        # `dataclasses`, which orjson loads, needs it where a class is made, and nobody makes one.
        sys.modules.setdefault("inspect", _Later("inspect"))
    if sys.argv[1:2] == ["mcp"]:
        from codex_checkpoints import mcp

        return mcp.main(sys.argv[2:])
    if sys.argv[1:2] == ["hook"]:
        from codex_checkpoints import hook

        return hook.main(sys.argv[2:])
    gc.set_threshold(50_000, 20, 20)  # most commands end before there is much to collect
    from codex_checkpoints import cli

    try:
        code = cli.main()
    except SystemExit as end:  # help, or wrong usage
        code = end.code if isinstance(end.code, int) else 0
    if sys.argv[1:2] not in [["serve"], ["watch"]]:
        _leave(code)
    return code


class _Later(ModuleType):
    """A module that is loaded when something of it is needed."""

    def __getattr__(self, name: str) -> object:
        """Return what the module itself has."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def _leave(code: int) -> NoReturn:
    """End the process: an orderly shutdown takes a tenth of the time of a command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    raise SystemExit(main())
