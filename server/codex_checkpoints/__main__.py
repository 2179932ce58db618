"""The command `codex-checkpoints`, also as `python -m codex_checkpoints`.

Codex waits for `mcp` and `hook`, so these are loaded alone.  So is the answer to `--version`.
"""

from __future__ import annotations

import sys


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
    if sys.argv[1:2] == ["mcp"]:
        from codex_checkpoints import mcp

        return mcp.main(sys.argv[2:])
    if sys.argv[1:2] == ["hook"]:
        from codex_checkpoints import hook

        return hook.main(sys.argv[2:])
    from codex_checkpoints import cli

    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
