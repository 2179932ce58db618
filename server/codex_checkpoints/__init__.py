"""Codex Checkpoints: keeps the knowledge of a Codex session as state.

A session of OpenAI's Codex CLI is a log, its *rollout*. This package projects a rollout into a
bounded *checkpoint*, and renders a checkpoint as a *view* that a model can read.
"""

__version__ = "0.1.0"
