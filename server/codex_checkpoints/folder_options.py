"""The two options that every command takes: which folders it is about (rules, "Files")."""

from __future__ import annotations

import argparse


def folder_options() -> argparse.ArgumentParser:
    """Return a parser to be a parent of others."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--codex-home", metavar="DIR", help="Codex's folder (else $CODEX_HOME)")
    options.add_argument(
        "--state-dir", metavar="DIR", help="our own folder (else codex-checkpoints in it)"
    )
    return options
