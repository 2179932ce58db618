"""Pure functions over session files and checkpoints.

Nothing here does I/O, reads a clock, an environment or a random source, logs, or starts a thread.
Bytes, times, paths, hashes and settings are arguments; values are returned.

    replay = Replay()                       # core.checkpoint.replay
    replay.feed(bytes_of_the_rollout)
    checkpoint = replay.checkpoint(updates=(), hashes={})
    text = view_v1(checkpoint, Caps())      # core.checkpoint.view
"""
