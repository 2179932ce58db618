"""Collects a session's changes to files, touch by touch, and the texts of the files in between.

A text is accepted only if a hash proves it: the session file holds the whole text, or the session's
patches lead without a gap from a known text to a known hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from codex_checkpoints.core.changes.file_history import FileHistory, PatchCounts
from codex_checkpoints.core.changes.git import commits, folders_put_back, is_in
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.effects import Effects, Touched
from codex_checkpoints.core.events import EDITS, Action, CallEnded, Fold, Record
from codex_checkpoints.core.fields import content_hash
from codex_checkpoints.core.patches import applied
from codex_checkpoints.core.record_place import RecordPlace


@frozen
class FileTouch:
    """A read or change of a file in the record `seq`, at the line `position`.

    `hunks` are the rows of a patch, None if the change was not a patch.  `text` is the whole text
    after the change and `hash` its hash, if the record holds it.  `content` is the whole text of an
    added or deleted file in an item or event.  `moved_from` is the previous uri of the file,
    `moved_to` its next one.  `rewrites`: it replaced the whole content.  If git restored the file,
    `undone_from` is the position of the first line whose changes were discarded.  `call_id` is the
    id of the call that made the change.
    """

    position: int
    seq: int
    turn_id: str | None
    action: Action
    hunks: tuple[str, ...] | None = None
    text: str | None = None
    hash: str | None = None
    moved_from: str | None = None
    moved_to: str | None = None
    rewrites: bool = False
    undone_from: int | None = None
    content: str | None = None
    call_id: str | None = None

    @property
    def edits(self) -> bool:
        """Return whether it changed the file."""
        return self.action in EDITS

    @property
    def found_it(self) -> bool:
        """Return whether the file existed before; unknown for a command that wrote it."""
        is_patched = self.action == "update" and self.hunks is not None
        return self.action in {"read", "delete"} or self.moved_to is not None or is_patched

    @property
    def touched(self) -> Touched:
        """Return this touch as the effect of a call on a file."""
        ends = self.moved_from, self.moved_to
        return Touched("", "", self.action, self.rewrites, *ends)

    def is_undone_by(self, later: FileTouch) -> bool:
        """Return whether a later touch discarded this one."""
        since = later.undone_from
        return since is not None and since <= self.position < later.position


MOST_COMMAND = 200
"""The most code points of a command that are shown."""


@frozen
class UnnamedChange:
    """A command, at the line `position`, that may have changed files without naming them.

    `command` is one line without secrets, empty if no command is recorded.
    """

    position: int
    command: str


class Edits(Fold):
    """Collects the touches of each file by its uri, in order."""

    def __init__(self, stream: Stream) -> None:
        """Follow a stream that has taken no record yet."""
        self._turns = stream.state.turns
        self.files: dict[str, list[FileTouch]] = {}
        self.unnamed: list[UnnamedChange] = []
        self._committed = -1
        stream.follow(self)

    def take(self, record: Record) -> None:
        """Record the calls that ended with a record."""
        for event in record.events:
            if isinstance(event, CallEnded) and record.counts:
                self._ended(Effects(event), record)

    def _ended(self, effects: Effects, record: Record) -> None:
        turn = self._turns.at(effects.ended.turn_id)
        turn_id = None if turn is None else turn.turn_id
        changes = not effects.ended.shortened and bool(effects.edits)
        if effects.may_have_changed_more:
            script = next((run.script for run in effects.runs), "")
            self.unnamed.append(UnnamedChange(record.position, value(script, MOST_COMMAND)))
        for each in effects.files:
            # The rows of a move belong to the new name; the old name has none.
            rows = [] if each.moved_to else effects.rows.get(each.name) if changes else None
            text, proof = None, each.added
            if each.rewrites and rows is not None and each.action != "delete":
                text = "".join(f"{row[1:]}\n" for row in rows if row[:1] == "+")
            elif each.action == "read" and not changes:
                text, proof = effects.printed_file
            proof = proof if text is not None and content_hash(text) == proof else None
            self.files.setdefault(each.uri, []).append(
                FileTouch(
                    record.position,
                    record.seq,
                    turn_id,
                    each.action,
                    None if rows is None else tuple(rows),
                    None if proof is None else text,
                    proof,
                    each.moved_from,
                    each.moved_to,
                    each.rewrites,
                    content=effects.contents.get(each.name) if changes else None,
                    call_id=effects.ended.call.call_id,
                )
            )
        # A restore by git discards all changes of a file since the last commit.
        for run in effects.runs:
            for folder in folders_put_back(run, effects):
                self._put_back(folder, record, turn_id)
            if commits(run):
                self._committed = record.position

    def _put_back(self, folder: str, record: Record, turn_id: str | None) -> None:
        """Add a touch to each changed file in a folder that git restored."""
        since = self._committed + 1
        for uri, touches in self.files.items():
            if not is_in(uri, folder):
                continue
            is_named = touches[-1].position == record.position
            if is_named:  # the command names the file
                touches.pop()
            edits = [each.position for each in touches if each.edits]
            is_open = bool(edits) and edits[-1] > self._committed
            # Git does not touch untracked files.
            is_new = is_open and touches[0].action == "add" and edits[0] > self._committed
            if is_named or (is_open and not is_new):
                touches.append(
                    FileTouch(record.position, record.seq, turn_id, "update", undone_from=since)
                )


def trail_of(touches: Sequence[FileTouch]) -> FileHistory:
    """Return the combined effect of the changes among some touches on a file.

    Changes that git discarded do not count.
    """
    trail = FileHistory(RecordPlace(None, -1))
    undone = [each for each in touches if each.undone_from is not None]
    for each in touches:
        where = RecordPlace(None, each.seq, each.turn_id)
        if each.undone_from is not None:
            trail.put_back_at(where, whole=False)
        elif each.edits and not any(map(each.is_undone_by, undone)):
            counts = None if each.hunks is None else PatchCounts.of(each.hunks)
            trail.take(where, each.touched, counts, each.seq)
            trail.commit()
    return trail


def texts_of(
    touches: Sequence[FileTouch],
    known: Sequence[str | None],
    now: str | None = None,
    before: str | None = None,
) -> dict[int, str]:
    """Return the text of a file after each touch, by index; -1 is the text before the first one.

    `known` are the hashes seen right after the touches.  `now` is the current text of the file,
    `before` a possible text before the session.  A text that no hash proves is left out.
    """
    last = len(touches) - 1
    hashes = {at: each.hash or known[at] for at, each in enumerate(touches)}
    sure = {at: found for at, found in hashes.items() if found is not None}
    hashes = dict(sure)
    claims = {at: each.text for at, each in enumerate(touches) if each.text is not None}
    for text, end in ((now, last), (before, -1)):
        if text is not None and (found := content_hash(text)) is not None:
            hashes.setdefault(end, found)
            claims |= {at: text for at, value in hashes.items() if value == found}
    proved = {at: text for at, text in claims.items() if at in sure}
    for at, text in claims.items():
        for steps in (range(at + 1, last + 1), range(at, -1, -1)):
            way = {at: text}
            for place, found in _along(touches, text, steps, back=steps.step < 0):
                way[place] = found
                if place in hashes:
                    if hashes[place] != content_hash(found):
                        break
                    proved |= way
                if place in claims:
                    break
    return proved


def _along(
    touches: Sequence[FileTouch], text: str, steps: range, *, back: bool
) -> Iterator[tuple[int, str]]:
    """Yield the texts after the touches at some indexes, or before each of them with `back`."""
    for at in steps:
        touch = touches[at]
        if touch.edits:
            patched = touch.action == "update" and touch.hunks is not None and not touch.rewrites
            found = applied(text, touch.hunks or (), back=back) if patched else None
            if found is None:
                return
            text = found
        yield (at - 1 if back else at), text
