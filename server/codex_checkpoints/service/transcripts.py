"""The conversation of one turn, to be read by people: messages, calls with outputs, patches."""

from __future__ import annotations

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.text import redact
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.recall import Entry, Recall, says_more
from codex_checkpoints.core.digest.searching import passing_over
from codex_checkpoints.core.rollout.outcome import outcome_in
from codex_checkpoints.service.digests import Digests
from codex_checkpoints.service.reading.catalogue import utc
from codex_checkpoints.service.reading.session_file import end_of, find_turn
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen

MOST_ITEMS = 200
"""Items of one answer."""

MOST_TEXT = 4_000
"""Code points of one item; the rest is recalled."""


@frozen
class TranscriptItem:
    """A record of a turn: the beginning of its text, redacted, and how long all of it is.

    `kind` is `user`, `assistant`, `call`, `output`, `patch` or `summary`; `about` is the command
    that an output is of; `exitCode` is how it ended, null where the output does not tell.
    """

    ref: str
    kind: str
    text: str
    total: int
    about: str
    exit_code: int | None
    at: str | None


@frozen
class TurnTranscript:
    """A turn with its items from `offset` on; `nextOffset` is null where no more follow."""

    turn_id: str
    turn: int | None
    items: tuple[TranscriptItem, ...]
    next_offset: int | None


def transcript(sessions: Sessions, session: str, turn: str | int, offset: int) -> TurnTranscript:
    """Return what was said and done in a turn, in order.

    Refuses as `Sessions.find`, `unknown_turn`, `unreadable_source`, `invalid_payload`.
    """
    if offset < 0:
        raise misfit("offset: must be 0 or more")
    row, opened = sessions.open(session)
    state = opened.now().state
    meant = find_turn(opened.now(), turn, row.session_id)
    replay = Replay()
    recall = Recall(
        replay,
        lambda entry: entry.turn_id == meant.turn_id and says_more(entry),
        lambda entry: entry,
        scripts=True,
    )
    # What stands before the turn is only read for where turns begin.
    replay.passes_over = passing_over(lambda _raw: replay.scale.lines + 1 >= meant.opened)
    Digests(sessions).read_over(row, replay, end_of(meant, state.turns.turns), None)
    numbers = {each.turn_id: number for number, each in enumerate(state.turns.counting(), 1)}
    told = [each for each in recall.entries if not (recall.typed and each.in_history)]
    shown = tuple(map(_item, told[offset : offset + MOST_ITEMS]))
    behind = offset + MOST_ITEMS
    rest = behind if behind < len(told) else None
    return TurnTranscript(meant.turn_id, numbers.get(meant.turn_id), shown, rest)


def _item(entry: Entry) -> TranscriptItem:
    outcome = outcome_in((entry.text,)) if entry.kind == "output" else None
    printed = None if outcome is None else outcome.printed
    text = entry.text if printed is None else printed
    return TranscriptItem(
        f"#{entry.seq}",
        entry.kind,
        text[:MOST_TEXT],
        len(text),
        redact(plain(entry.about))[:MOST_TEXT] if entry.kind == "output" else "",
        None if outcome is None else outcome.exit_code,
        None if entry.stamp is None else utc(entry.stamp),
    )
