"""The command `codex-checkpoints`, also as `python -m codex_checkpoints`.

Codex waits for the door `mcp` to answer, so that one is opened without loading the others.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run one command; return the exit code."""
    if sys.argv[1:2] == ["mcp"]:
        from codex_checkpoints import mcp

        return mcp.main(sys.argv[2:])
    from codex_checkpoints import cli

    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
