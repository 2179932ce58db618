"""Count how many files of sessions come back, by their state (FIL-1).

    bench/files_back.py FOLDER...

A file counts where the session wrote it as new and recorded its text, so its later texts follow
from the patches.  Each is planned back to the turn that wrote it, from its text at the end.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from token_figures import session_files

from codex_checkpoints.core.changes.edits import Edits, FileTouch
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.files.plan import OnDisk, content_of, planned
from codex_checkpoints.core.patches import applied


def edits_of(path: str) -> dict[str, list[FileTouch]]:
    """Return the touches of each file of a session."""
    replay = Replay()
    edits = Edits(replay)
    with open(path, "rb") as file:
        replay.feed(file.read())
    return edits.files


def text_at_the_end(touches: Sequence[FileTouch]) -> str | None:
    """Return the last text of a file that was written as new; None where it does not follow."""
    text: str | None = None
    for touch in touches:
        if not touch.edits:
            continue
        if touch.rewrites and touch.action != "delete":
            text = content_of(touch)
        elif text is None or touch.hunks is None or touch.moved_to or touch.moved_from:
            return None
        else:
            text = applied(text, touch.hunks)
    return text


def states(path: str) -> Iterator[str]:
    """Yield the state of each such file that was changed after it was written, and its proof."""
    for uri, touches in edits_of(path).items():
        made = [each for each in touches if each.edits]
        if len(made) < 2 or not made[0].rewrites or made[0].action == "delete":  # noqa: PLR2004 - written, then changed
            continue
        text = text_at_the_end(made)
        if text is None:
            yield "does not follow from its patches"
            continue
        (row,) = planned({uri: made}, made[0].position, lambda _, text=text: OnDisk(text))
        is_right = row.then is None or row.then == content_of(made[0])
        yield f"{row.state} ({row.proof})" if is_right else "WRONG"


def main() -> None:
    """Print the counts."""
    counts = Counter(state for path in session_files(sys.argv[1:]) for state in states(path))
    total = sum(counts.values())
    for state, count in counts.most_common():
        print(f"{count:5} {count / total:4.0%}  {state}")


if __name__ == "__main__":
    main()
