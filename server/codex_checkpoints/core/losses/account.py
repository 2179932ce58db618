"""A session read once for its losses: at each compaction what was there, and what is gone.

One reading serves the replay, the survey of the history, `replacements` and `Account`.  What a
replacement no longer holds is decided by `held`, what is read again by `files`.

Windows follow each other as they stand in the file; those that a rollback took away are listed too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.text import one_line, redact
from codex_checkpoints.core.history.choice import choose
from codex_checkpoints.core.history.items import (
    Item,
    counts,
    read_item,
    replacement_of,
    texts,
    user_message,
)
from codex_checkpoints.core.history.rebuild import (
    KEPT_TOKENS,
    Window,
    kept_prompts,
    windows_of,
    without_last_turns,
)
from codex_checkpoints.core.history.speakers import is_prompt
from codex_checkpoints.core.history.survey import Compaction, Opening, Outline, Survey
from codex_checkpoints.core.history.tokens import approximate_tokens
from codex_checkpoints.core.losses.watched import (
    MAX_LISTED,
    Loss,
    LostCommand,
    LostFile,
    LostText,
    Missed,
    Readings,
    Watched,
)
from codex_checkpoints.core.rollout.fields import is_list, is_object, text_of, whole_of
from codex_checkpoints.core.rollout.reader import NOTED, Line
from codex_checkpoints.values import frozen

SEARCHED = 1 << 22
"""Code points of a replacement that are searched."""

_SEALED = frozenset({"compaction", "context_compaction"})
_NO_TEXT = frozenset({"type", "role", "id", "call_id", "encrypted_content", "image_url", "status"})
_BACKSLASHES = re.compile(r"\\+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_PATH_BEFORE = re.compile(r"[A-Za-z0-9_./~-]")
_PATH_BEHIND = re.compile(r"[A-Za-z0-9_/-]|\.[A-Za-z0-9_]")
_DRIVE = re.compile(r"[A-Za-z]:")


@frozen
class Held:
    """The text of a replacement in the two forms in which it is searched.

    `sealed` says that part of it is encrypted, `whole` that none of it was too long to look at.
    """

    _words: str
    _names: str
    sealed: bool
    whole: bool = True

    def lost_text(self, text: str) -> bool | None:
        """Return whether a value is gone (rules 1 and 2); one that says nothing never is."""
        cut = text.endswith("…")
        needle = _folded(text.removesuffix("…"))
        return self._lost(not needle or _has_words(self._words, needle, cut=cut))

    def lost_file(self, uri: str, base: str | None) -> bool | None:
        """Return whether the file with this uri is no longer named (rule 3)."""
        home = "" if base is None else _slashed(base).rstrip("/") + "/"
        names, name = self._names, uri
        if _DRIVE.match(home) or _DRIVE.match(uri):  # where case tells no two files apart
            names, name, home = names.casefold(), uri.casefold(), home.casefold()
        return self._lost(_has_path(names, name, home))

    def _lost(self, found: bool) -> bool | None:  # noqa: FBT001 - the answer of a search
        if found:
            return False
        return None if self.sealed or not self.whole else True


def held_by(items: Iterable[Item]) -> Held:
    """Make the text of a replacement ready to be searched."""
    parts: list[str] = []
    sealed, room = False, SEARCHED
    for item in items:
        sealed = sealed or item["type"] in _SEALED
        for text in _texts(item):
            parts.append(text[: max(0, room)])
            room -= len(text)
    words = " ".join(_folded(redact(part)) for part in parts)
    return Held(words, "\n".join(map(_slashed, parts)), sealed, room >= 0)


def _texts(item: Item) -> Iterator[str]:
    """Yield every text in an item, in its order, but for names of kinds and ids."""
    # A loop and no recursion: how deep a value is nested was decided by whoever wrote the file.
    waiting: list[object] = [item]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif is_object(value):
            inside = [each for key, each in value.items() if key not in _NO_TEXT]
            waiting.extend(reversed(inside))
        elif is_list(value):
            waiting.extend(reversed(value))


def _folded(text: str) -> str:
    return " ".join(one_line(text).split()).casefold()


def _slashed(text: str) -> str:
    """Return a text with the separators of paths all alike."""
    return _BACKSLASHES.sub("/", text)


def _has_words(text: str, needle: str, *, cut: bool) -> bool:
    """Return whether whole words stand in a text; a value that was `cut` may end within one."""
    opens, closes = _WORD.match(needle[0]), None if cut else _WORD.match(needle[-1])
    for start, end in _places(text, needle):
        before, behind = text[start - 1 : start], text[end : end + 1]
        inside = (opens and _WORD.match(before)) or (closes and _WORD.match(behind))
        if not inside:
            return True
    return False


def _has_path(text: str, name: str, home: str) -> bool:
    for start, end in _places(text, name):
        if _PATH_BEHIND.match(text, end, end + 2):
            continue
        for front in ("", "./", home):
            at = start - len(front)
            if at >= 0 and text.startswith(front, at) and not _PATH_BEFORE.match(text[at - 1 : at]):
                return True
    return False


def _places(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + 1)


_REMEMBERED = 4 * KEPT_TOKENS
"""Tokens of prompts that are remembered: more than outlive a compaction, for rollbacks."""


@frozen
class Replacement:
    """What stands in the place of the history from the record `at.seq` on."""

    at: Compaction
    held: Held


class Replacements:
    """The fold that hands out the replacements of a session as they come; it follows a survey."""

    def __init__(self, survey: Survey) -> None:
        """Begin before the first byte, beside the survey."""
        self.new: list[Replacement] = []
        """Those that nobody has taken yet, the oldest first."""
        self._survey = survey
        self._prompts: list[Item] = []
        self._prompt_tokens = 0
        survey.reader.folds.append(self)

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the survey does."""
        return NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if line.passed_over or not counts(line):
            return
        match line.kind:
            case "compacted":
                self._replaced(line)
            case "response_item" if line.tag == "message" and line.inner == "user":
                self._prompted(line)
            case "event_msg" if line.tag == "thread_rolled_back":
                turns = whole_of(line.payload.get("num_turns")) or 0
                self._prompts = without_last_turns(self._prompts, turns)
            case _:
                pass

    def _prompted(self, line: Line) -> None:
        item = read_item(line.payload)
        if item is None or not is_prompt(item):
            return
        self._prompts.append(item)
        self._prompt_tokens += _tokens(item)
        if self._prompt_tokens > 2 * _REMEMBERED:
            self._prompts = kept_prompts(self._prompts, _REMEMBERED)
            self._prompt_tokens = sum(map(_tokens, self._prompts))

    def _replaced(self, line: Line) -> None:
        mark = self._survey.newest
        if not isinstance(mark, Compaction) or mark.place != line.place:
            return  # Codex passes over it
        items = replacement_of(line.payload)
        if items is None:
            message = text_of(line.payload.get("message")) or ""
            items = (*kept_prompts(self._prompts), user_message([message]))
        self.new.append(Replacement(mark, held_by(items)))
        self._prompts = [item for item in items if is_prompt(item)]
        self._prompt_tokens = sum(map(_tokens, self._prompts))


def _tokens(item: Item) -> int:
    return approximate_tokens("".join(texts(item)))


class Account:
    """The fold that stops at each compaction and compares, beside a replay of the session."""

    def __init__(
        self,
        updates: Iterable[Update] = (),
        known: Replay | None = None,
        *,
        source: Account | None = None,
    ) -> None:
        """Begin before the first byte of a session; `updates` are all that it remembers.

        Whoever feeds the end of a session alone gives what is `known` of the whole: what was asked
        and planned is asked of that, and windows have the numbers that their records tell.  Where a
        compaction made the session, `source` is the account of what it replaced, to be let go of:
        the first window of the session is the one in which that ended (DSC-73).
        """
        self.replay = Replay()
        self._survey = Survey(self.replay)
        self._replacements = Replacements(self._survey)
        self.replay.folds.append(self)
        # The fold of the replay comes last: the state before the line is compared.
        self.replay.folds.append(self.replay.folds.pop(0))
        self._updates = tuple(updates)
        self._known = known
        self._watched = Watched(self.replay.state, None if source is None else source._watched)  # noqa: SLF001 - one of its kind
        self._missed: list[tuple[Replacement, Missed]] = []
        self._readings: list[Readings] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the folds beside this one do."""
        return NOTED

    def take(self, line: Line) -> None:
        """Compare where the line replaced a history."""
        del line
        new, self._replacements.new = self._replacements.new, []
        for replacement in new:
            self._missed.append((replacement, self._missing(replacement.held, replacement.at.seq)))
            self._readings.append(self._watched.readings())
            self._watched.open_window()

    def losses(self) -> tuple[Loss, ...]:
        """Return a loss for each compaction up to here, the oldest first."""
        outline = self._survey.outline()
        windows = _windows(outline)
        since = (*self._readings[1:], self._watched.readings())
        losses: list[Loss] = []
        for (each, missed), read in zip(self._missed, since, strict=False):
            window = windows.get(each.at.index)
            number = None if window is None else window.number
            if self._known is not None:
                number = each.at.number
            told = each.at, number, outline.openings[each.at.index]
            losses.append(_loss(*told, missed, read, counts=window is not None))
        return tuple(losses)

    # --- at a compaction -------------------------------------------------------------------------

    @property
    def _whole(self) -> Replay:
        return self.replay if self._known is None else self._known

    def _missing(self, held: Held, seq: int) -> Missed:
        """Compare what is known before the line `seq`; an update follows the line it is of."""
        known = self._whole
        checkpoint = known.checkpoint((each for each in self._updates if each.seq < seq), {})
        task, plan = checkpoint.task, checkpoint.plan
        files, hidden_files = self._changed(held)
        commands, hidden_commands = self._failing(held)
        ref = None if plan.evidence is None else plan.evidence.ref
        steps = (step.text for step in plan.steps if not plan.done.get(step.id, False))
        return Missed(
            held.sealed,
            None if task is None else self._text(held, task.text, task.evidence.ref),
            tuple(self._text(held, text, ref) for text in steps),
            files,
            commands,
            hidden_files + hidden_commands,
        )

    def _text(self, held: Held, text: str, ref: str | None) -> LostText:
        return LostText(text, ref, self._told_at(ref), held.lost_text(text))

    def _changed(self, held: Held) -> tuple[tuple[LostFile, ...], int]:
        files, base = self._watched.files, self.replay.state.base
        newest = reversed(files.changed.items())
        found = [
            LostFile(uri, each.change, each.ref, each.seq, held.lost_file(uri, base))
            for uri, each in newest
        ]
        found.sort(key=_by_loss)
        return tuple(found[:MAX_LISTED]), len(found[MAX_LISTED:]) + files.forgotten

    def _failing(self, held: Held) -> tuple[tuple[LostCommand, ...], int]:
        found: list[LostCommand] = []
        for each in self._watched.commands.failing():
            lost, run = held.lost_text(each.text), each.last
            found.append(LostCommand(each.text, run.outcome.exit_code, run.ref, run.seq, lost))
            if lost is False:
                each.window += 1  # it is in the next window, which may lose it
        found.sort(key=_by_loss)
        return tuple(found[:MAX_LISTED]), len(found[MAX_LISTED:])

    def _told_at(self, ref: str | None) -> int | None:
        """Return the `seq` of the message or the plan with this reference, if it was told here."""
        return None if ref is None else next(self._places_of(ref), None)

    def _places_of(self, ref: str) -> Iterator[int]:
        state = self._whole.state
        for turn in reversed(state.turns.turns):
            if turn.said is not None and turn.said.ref == ref:
                yield turn.said.seq
            if turn.planned is not None and turn.planned.call_id == ref:
                yield turn.planned.seq
        if state.planned is not None and state.planned.call_id == ref:
            yield state.planned.seq


def _windows(outline: Outline) -> dict[int, Window]:
    """Return the windows that count, by the number of their compaction in the file."""
    choice = choose(outline)
    windows = windows_of(outline, choice)[1:]
    return {each.index: window for each, window in zip(choice.windows, windows, strict=True)}


def _by_loss(entry: LostFile | LostCommand) -> int:
    """Put what is lost first, then what nobody can tell; the newest stay in front."""
    return {True: 0, None: 1, False: 2}[entry.lost]


def _loss(  # noqa: PLR0913 - what a loss is made of
    at: Compaction,
    number: int | None,
    opening: Opening,
    missed: Missed,
    since: Readings,
    *,
    counts: bool,
) -> Loss:
    return Loss(
        number=number,
        window_id=at.window_id,
        opened_seq=at.seq,
        opened_at=at.stamp,
        trigger=opening.trigger,
        strategy=at.strategy,
        counts=counts,
        missed=missed,
        since=since,
    )
