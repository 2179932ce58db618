"""Compaction: from a checkpoint and a history to what Codex sends instead (JUN-34).

Selection, sizes, the text of the handoff, placement, and the values that an operation writes, all
as pure functions.  Reading a history is the business of `core/history`, the checkpoint and its view
that of `core/checkpoint`; hooks, files, locks and the order of steps belong to the service.

    built = build(history, checkpoint, Caps(), Terms(placement="manual"))      # building
    lines = in_place(built.items, chain, size)                                 # installed
"""
