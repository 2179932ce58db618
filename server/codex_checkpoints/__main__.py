"""`python -m codex_checkpoints`: the same as the command `codex-checkpoints`."""

from codex_checkpoints.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
