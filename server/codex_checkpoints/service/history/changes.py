"""Reports a session's changes of files: by turn, with its patches and with proven texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import Factory, frozen

from codex_checkpoints.core.changes.edits import Edits, FileTouch, texts_of, trail_of
from codex_checkpoints.core.changes.file_history import ChangeKind
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import SeenHashes
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.fields import content_hash
from codex_checkpoints.core.paths import uri_of
from codex_checkpoints.service.reading.session_file import end_of, find_turn
from codex_checkpoints.service.sessions.sessions import Sessions

MOST_FILES = 500
"""Maximum number of files in an answer."""

MOST_TEXT = 1 << 20
"""Maximum code points of a file's text and of its patches; a longer one is omitted."""

MOST_TEXTS = 1 << 23
"""The same for a whole answer."""

FileChangeKind = ChangeKind | Literal["read"]
Standing = Literal["same", "changed", "gone", "unknown"]


@frozen
class ChangesParams:
    """Some turns of a session, by id or number: `turnId` alone is that turn.

    With `afterTurnId` it is all turns after that one, up to `turnId` or to now; with neither the
    whole session.  `uri` asks for one file only, even if it was only read.  With `texts` the answer
    has texts and patches; `bases` are by uri texts that files may have had before the session, as
    git has them, or at some time in it.
    """

    session_id: str
    turn_id: str | None = None
    after_turn_id: str | None = None
    uri: str | None = None
    texts: bool = False
    bases: dict[str, str] = Factory(dict[str, str])


@frozen
class FilePatch:
    """One change of a file: its turn and its record, and the rows of its hunks, redacted.

    `text` is null if no patch shows the change.
    """

    ref: str
    turn: int | None
    text: str | None


@frozen
class FileChange:
    """The effect of the turns on a file.

    `kind` is `created`, `changed`, `deleted`, `moved`, `put_back` (by git, and left so) or `read`;
    `movedFrom` and `movedTo` are the other end of a move.  `added` and `removed` count lines, as
    far as patches show; `turns` are the numbers of the turns that changed it.  `putBack` is the
    record in which git restored it last; changes since the commit before are not counted then.
    `seenIn` is the turn in which the session read or changed it last, and `now` compares the
    present file with that: `same`, `changed`, `gone` or `unknown`.  `before` and `after` are its
    whole text before the first of these changes and after the turns; null if no hash proves it, if
    it holds a secret, and without `texts`.
    """

    uri: str
    kind: FileChangeKind
    moved_from: str | None
    moved_to: str | None
    added: int
    removed: int
    turns: tuple[int, ...]
    put_back: str | None
    seen_in: int | None
    now: Standing
    before: str | None
    after: str | None
    patches: tuple[FilePatch, ...]


@frozen
class FileChanges:
    """The files that were changed, in the order of their names; `left` more are not listed.

    `unnamed` counts the commands that may have changed files which they do not name.
    """

    files: tuple[FileChange, ...]
    left: int
    unnamed: int


def changes(sessions: Sessions, params: ChangesParams) -> FileChanges:
    """Return the changes of some turns of a session in files.

    Refuses as `Sessions.find`, `unknown_turn`, `unreadable_source`.
    """
    row, opened = sessions.open(params.session_id)
    replay = Replay()
    edits = Edits(replay)
    sessions.catalogue.read_with(replay, row)
    begin, end = _range(opened.now(), params, row.session_id)
    named = None
    if params.uri is not None:
        found = uri_of(params.uri, folder=None, turn_folder=None, base=replay.state.base)
        named = params.uri if found is None else found.uri
    touched = {
        uri: touches
        for uri, touches in sorted(edits.files.items())
        if uri == named
        or (named is None and any(begin < each.position <= end and each.edits for each in touches))
    }
    shown = dict(list(touched.items())[:MOST_FILES])
    looks = sessions.workspace.looks(replay.state.base, shown)
    ignored = Ignoring(sessions.settings.digest_ignore)
    counted = enumerate(replay.state.turns.counting(), 1)
    one = _One(
        {turn.turn_id: number for number, turn in counted}, sessions.projections.seen_of(opened)
    )
    room, files = MOST_TEXTS, list[FileChange]()
    for uri, touches in shown.items():
        texts: dict[int, str] = {}
        quotes = params.texts and not ignored.path(uri)
        if quotes:
            data = sessions.workspace.content(replay.state.base, uri)
            texts = texts_of(touches, one.hashes(uri, touches), _text(data), params.bases.get(uri))
        found = one.change(uri, touches, (begin, end), texts, looks, quotes=quotes)
        size = sum(len(each or "") for each in (found.before, found.after))
        size += sum(len(each.text or "") for each in found.patches)
        room -= size
        if room < 0:
            found = one.change(uri, touches, (begin, end), {}, looks, quotes=False)
            room += size
        files.append(found)
    unnamed = 0 if named else sum(begin < each.position <= end for each in edits.unnamed)
    return FileChanges(tuple(files), len(touched) - len(shown), unnamed)


def _range(replay: Replay, params: ChangesParams, session_id: str) -> tuple[int, int]:
    """Return the positions of the line before the range, and of its last line."""
    turns = replay.state.turns.turns
    lines = replay.scale.lines
    begin, end = 0, lines
    if params.turn_id is not None:
        turn = find_turn(replay, params.turn_id, session_id)
        begin, end = turn.opened - 1, end_of(turn, turns) or lines
    if params.after_turn_id is not None:
        begin = end_of(find_turn(replay, params.after_turn_id, session_id), turns) or lines
    return begin, end


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None or len(data) > MOST_TEXT else data.decode()
    except UnicodeDecodeError:
        return None


@frozen
class _One:
    """The data shared by all files: the numbers of turns by id, and the seen hashes."""

    numbers: Mapping[str | None, int]
    seen: SeenHashes

    def hashes(self, uri: str, touches: Sequence[FileTouch]) -> list[str | None]:
        """Return the hash that a file had after each touch, if it was seen."""
        return [self.seen.get((uri, each.seq)) or each.hash for each in touches]

    def change(  # noqa: PLR0913 - all inputs of one file
        self,
        uri: str,
        touches: Sequence[FileTouch],
        between: tuple[int, int],
        texts: Mapping[int, str],
        looks: Mapping[str, str | None],
        *,
        quotes: bool,
    ) -> FileChange:
        """Return the effect of some turns on a file."""
        begin, end = between
        places = [at for at, each in enumerate(touches) if begin < each.position <= end]
        edited = [at for at in places if touches[at].edits]
        made = [touches[at] for at in edited]
        last = next((at for at in reversed(range(len(touches))) if touches[at].position <= end), -1)
        undone = [each for each in made if each.undone_from is not None]
        created = bool(made) and made[0].action == "add"
        trail = trail_of(made)
        first = (edited[0] if edited else last + 1) - 1
        was_none = created and (first < 0 or touches[first].action == "delete")
        before = "" if was_none else texts.get(first)
        after = "" if made and trail.deleted else texts.get(last)
        turns = (self.numbers.get(each.turn_id) for each in made)
        return FileChange(
            uri,
            trail.kind if made else "read",
            trail.moved_from,
            trail.moved_to,
            trail.added,
            trail.removed,
            tuple(dict.fromkeys(each for each in turns if each is not None)),
            f"#{undone[-1].seq}" if undone else None,
            self.numbers.get(touches[-1].turn_id),
            self._standing(uri, touches, texts, looks),
            _shown(before) if quotes else None,
            _shown(after) if quotes else None,
            tuple(map(self._patch, made)) if quotes else (),
        )

    def _patch(self, touch: FileTouch) -> FilePatch:
        text = None if touch.hunks is None else redact(plain("\n".join(touch.hunks)))
        text = None if text is None or len(text) > MOST_TEXT else text
        return FilePatch(f"#{touch.seq}", self.numbers.get(touch.turn_id), text)

    def _standing(
        self,
        uri: str,
        touches: Sequence[FileTouch],
        texts: Mapping[int, str],
        looks: Mapping[str, str | None],
    ) -> Standing:
        now = looks.get(uri, "")
        then = self.hashes(uri, touches)[-1] or content_hash(texts.get(len(touches) - 1))
        if now is None:
            return "same" if touches[-1].action == "delete" else "gone"
        if then is None or now.partition(":")[0] != then.partition(":")[0]:
            return "unknown"
        return "same" if now == then else "changed"


def _shown(text: str | None) -> str | None:
    """Return a text that may be shown: not too long and without secrets."""
    return None if text is None or len(text) > MOST_TEXT or redact(text) != text else text
