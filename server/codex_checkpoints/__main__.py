"""Runs the command `codex-checkpoints`, also as `python -m codex_checkpoints`.

Codex waits for `mcp` and `hook`, so these are imported without the other commands.  So is the
answer to `--version`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from codex_checkpoints import __version__


def main() -> int:
    """Run one command; return the exit code."""
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt:
        # Ctrl+C came while modules were loading; a hook must not fail even then.
        return 0 if sys.argv[1:2] == ["hook"] else 130


def _run(arguments: list[str]) -> int:
    match arguments:
        case ["--version"] if sys.stdout is not None:
            sys.stdout.write(f"codex-checkpoints {__version__}\n")
            return 0
        case ["mcp", *options]:
            from codex_checkpoints.doors.mcp import server

            return server.main(options)
        case ["hook", *options]:
            from codex_checkpoints.doors import hook

            return hook.main(options)
        case _:
            gc.set_threshold(50_000, 20, 20)  # most commands end before there is much to collect
            from codex_checkpoints.doors import cli

            return _finished(cli.main, arguments)


def _finished(run: Callable[[], int], arguments: list[str]) -> int:
    try:
        code = run()
    except SystemExit as end:  # help, or wrong usage
        code = end.code if isinstance(end.code, int) else 0
    if arguments[:1] not in [["serve"], ["watch"]]:
        _leave(code)
    return code


def _leave(code: int) -> NoReturn:
    """End the process: an orderly shutdown takes a tenth of the time of a command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    raise SystemExit(main())
