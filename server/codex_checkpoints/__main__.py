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
    if sys.argv[1:2] not in [[], ["serve"]] and {"-h", "--help"}.isdisjoint(sys.argv):
        _load_orjson()
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


def _load_orjson() -> None:
    """Load orjson without modules of which it wants a type each, for values that we never write."""
    wanted = {
        "dataclasses": {"_FIELD": None},
        "json": {"JSONDecodeError": _NotJson},
        "uuid": {"UUID": type("UUID", (), {})},
    }
    instead = {name: ModuleType(name) for name in wanted if name not in sys.modules}
    for name, module in instead.items():
        vars(module).update(wanted[name])
    sys.modules.update(instead)
    try:
        with contextlib.suppress(Exception):  # who needs it loads it as it is
            import_module("orjson")
    finally:
        for name in instead:
            del sys.modules[name]


class _NotJson(ValueError):
    """`json.JSONDecodeError`, by its parts and its words."""

    def __init__(self, msg: str, doc: str, pos: int) -> None:
        line, column = doc.count("\n", 0, pos) + 1, pos - doc.rfind("\n", 0, pos)
        super().__init__(f"{msg}: line {line} column {column} (char {pos})")
        self.msg, self.doc, self.pos = msg, doc, pos


def _leave(code: int) -> NoReturn:
    """End the process: an orderly shutdown takes a tenth of the time of a command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    raise SystemExit(main())
