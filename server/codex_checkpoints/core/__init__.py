"""The ground floor: what a rollout says and what a checkpoint keeps, as pure functions.

Nothing in here does I/O, reads a clock, an environment or a random source, logs, or starts a
thread.  Bytes, times, paths, hashes and settings come in as arguments; values go out.

- `rollout`     from bytes to lines and items: what each line says, what a tool call did, turns.
- `history`     from bytes to what a model would be sent: windows, items, tokens.
- `checkpoint`  from items to a checkpoint: the reducer, its caps, canonical bytes, the view.

The whole story in four calls, each usable on its own:

    replay = Replay()                       # core.checkpoint.replay
    replay.feed(bytes_of_the_rollout)
    checkpoint = replay.checkpoint(updates=(), hashes={})
    text = view_v1(checkpoint, Caps())      # core.checkpoint.view
"""
