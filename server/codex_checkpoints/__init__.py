"""Codex Checkpoints: keep what a Codex session knows, as state.

A session of OpenAI's Codex CLI is a log, its *rollout*.  This package projects a rollout into a
bounded, deterministic *checkpoint*, renders a checkpoint as a *view* that a model can read, and
serves both to an editor and to the command line.

- `core`      values in, values out: rollout lines, the reducer, the view.  No I/O at all.
- `threads`, `records`, `workspace`, `watch`   the doors to the disk, one subject each.
- `service`   the use cases.
- `server`, `cli`   the doors to people and editors; they translate and decide nothing.

Start reading at `core/__init__.py`.
"""

__version__ = "0.1.0"
