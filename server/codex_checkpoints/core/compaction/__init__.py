"""Compaction: from a checkpoint and a history to what Codex sends instead (JUN-34).

Pure functions for the selection, the sizes, the handoff text, the placement and the records.
`core/history` reads the history, `core/checkpoint` makes the checkpoint and its view; the service
has the hooks, files, locks and the order of steps.

    built = build(history, checkpoint, Caps(), Terms(placement="manual"))      # building
    lines = in_place(built.items, chain, size)                                 # installed
"""
