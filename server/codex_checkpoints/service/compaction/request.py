"""The request for a compaction, its report, its hooks, its job for Codex, and its refusals."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import orjson

from codex_checkpoints.codex import config, file_edit, hooks
from codex_checkpoints.codex.app_server import AskingFailed, Ran, RequestDeclined, nobody
from codex_checkpoints.codex.entries import CannotEdit
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.compaction.building import (
    STANDING_CONTEXT,
    Declined,
    Fitted,
    Placement,
    Reason,
    Replacement,
    TooLarge,
    handed_over,
)
from codex_checkpoints.core.compaction.records import (
    CompactionWarning,
    Contents,
    Determinism,
    Into,
    RequestedBy,
    Strategy,
    Windows,
    digest_of,
)
from codex_checkpoints.core.history.kinds import Kind, kind_of
from codex_checkpoints.core.history.tokens import Figure, of_item, of_items
from codex_checkpoints.core.rollout.fields import Json, is_object, load, object_of, text_of
from codex_checkpoints.service.compaction.source import CompactionSource
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.reading.session_file import bytes_between
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import CompactionHook
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.values import frozen

MOST_REASON = 500
_KEYS = {"continue", "stopReason", "suppressOutput", "systemMessage"}
"""What Codex 0.169 lets its own hooks around a compaction say."""

Outcome = Literal["passed", "blocked", "failed", "timed_out", "not_started", "garbage"]
IsCancelled = Callable[[], bool]
Run = Callable[[Sequence[str], bytes, float, str, IsCancelled], Ran]


@frozen
class HookResult:
    """The result of a hook; `number` counts the hooks of one event from 1."""

    number: int
    outcome: Outcome
    reason: str | None = None


@frozen
class HookCall:
    """The hooks of one event, how to run them, and in which folder."""

    hooks: tuple[CompactionHook, ...]
    run: Run
    folder: str

    def ask(
        self, facts: Mapping[str, object], cancelled: IsCancelled
    ) -> tuple[tuple[HookResult, ...], HookResult | None]:
        """Run the hooks in order until one stops the operation; return all results, and that one.

        A hook that fails stops it too, unless the settings say `continue` (CKP-12). Raises
        `Cancelled` where the caller cancelled; the hook that runs then is ended.
        """
        results: list[HookResult] = []
        for number, hook in enumerate(self.hooks, 1):
            answer = self._result(number, hook, facts, cancelled)
            results.append(answer)
            passes = answer.outcome == "passed"
            if answer.outcome == "blocked" or not (passes or hook.on_failure == "continue"):
                return tuple(results), answer
        return tuple(results), None

    def notify(self, facts: Mapping[str, object]) -> tuple[HookResult, ...]:
        """Run all hooks, whatever they answer."""
        return tuple(
            self._result(number, hook, facts, nobody) for number, hook in enumerate(self.hooks, 1)
        )

    def _result(
        self, number: int, hook: CompactionHook, facts: Mapping[str, object], cancelled: IsCancelled
    ) -> HookResult:
        given, seconds = orjson.dumps(facts) + b"\n", hook.timeout_seconds
        ran = self.run(hook.command, given, seconds, self.folder, cancelled)
        match ran.end:
            case "cancelled":
                raise Cancelled
            case "timed_out" | "not_started" as how:
                return HookResult(number, how)
            case "exited":
                if ran.code != 0 and ran.output is not None:
                    return HookResult(number, "failed", f"exit code {ran.code}")
                return _answer(number, ran.output)


def _answer(number: int, output: bytes | None) -> HookResult:
    if output is None:
        return HookResult(number, "garbage")
    if not output.strip():
        return HookResult(number, "passed")
    try:
        answer: object = orjson.loads(output)
    except orjson.JSONDecodeError:
        return HookResult(number, "garbage")
    # What we do not know may be meant to stop us: such an answer counts as none.
    if (
        not is_object(answer)
        or not answer.keys() <= _KEYS
        or type(answer.get("continue", True)) is not bool
    ):
        return HookResult(number, "garbage")
    if answer.get("continue", True):
        return HookResult(number, "passed")
    reason = text_of(answer.get("stopReason"))
    return HookResult(number, "blocked", value(reason, MOST_REASON) if reason else None)


LONGEST_REASON = 300

Summarise = Callable[[str, str, str | Excerpt, float, Callable[[], bool]], str]
"""Have a Codex compact a fork of a thread of a home, within seconds; return the fork's id."""

BASE_TOKENS = 6_000
"""What base instructions take where the session file does not hold them, as older ones."""

CONTEXT_TOKENS = 2_000
"""What the context of a new thread and the request for a summary take at least."""

_COMES_ANEW: frozenset[Kind] = frozenset({"instructions", "context"})


@frozen
class Job:
    """A summary that Codex is to make, and how long it may take."""

    summarise: Summarise
    codex: str
    codex_home: str
    session_id: str
    seconds: float
    excerpt: Excerpt | None = None

    def run(self, cancelled: Callable[[], bool]) -> str:
        """Return the id of the fork; refuses `timed_out`, `codex_failed`; raises `Cancelled`."""
        try:
            return self.summarise(
                self.codex,
                self.codex_home,
                self.excerpt or self.session_id,
                self.seconds,
                cancelled,
            )
        except AskingFailed as error:
            raise self._refusal(error) from error

    def _refusal(self, error: AskingFailed) -> Refusal | Cancelled:
        facts: dict[str, object] = {"sessionId": self.session_id}
        match error.code:
            case "cancelled":
                return Cancelled()
            case "timed_out":
                facts |= {
                    "seconds": self.seconds,
                    "hint": "--timeout or the setting codexTimeoutSeconds allow for more.",
                }
                message = f"Codex made no summary within {self.seconds:g} seconds"
            case _:
                answer = error.reason if isinstance(error, RequestDeclined) else str(error)
                reason = value(answer, LONGEST_REASON) or "it did not say why"
                facts |= {
                    "reason": reason,
                    "hint": "The strategy `checkpoint` needs neither Codex nor a model.",
                }
                message = f"Codex made no summary: {reason}"
        return Refusal(error.code, message, facts)


def excerpt_of(
    sessions: Sessions, source: CompactionSource, room: int
) -> Excerpt | TooLarge | None:
    """Return the part of a session that fits into `room` tokens (CKP-22); calls go first.

    Base instructions, tools and context take room as well.  None where Codex can fork the whole
    session. A compressed session gives an excerpt too: Codex would unpack its file for a fork.
    """
    history, context = source.traced.history.items, source.traced.history.context
    room -= max(source.traced.outline.instructions or BASE_TOKENS, context.beside)
    if context.history <= room:
        rows = (source.row, *sessions.catalogue.chains.below(source.row))
        if not any(each.rollout.compressed for each in rows):
            return None
    items = [item for item in history if kind_of(item) not in _COMES_ANEW]
    anew = max(CONTEXT_TOKENS, context.history - of_items(items))
    match handed_over(items, max(0, room - anew), of_item):
        case TooLarge() as too_large:
            return too_large
        case Fitted() as found:
            return Excerpt(
                [items[place] for place in found.kept],
                source.row.cwd,
                source.row.model,
                text_of(source.traced.head.get("model_provider")),
            )


def material(sessions: Sessions, source: CompactionSource, scratch_id: str) -> tuple[Json, ...]:
    """Return the history of a scratch fork; refuses `codex_failed`."""
    row = sessions.catalogue.look_for(scratch_id)
    if row is not None:
        items = Histories(sessions).traced(row).history.items
        if digest_of(items) != digest_of(source.traced.history.items):
            return tuple(items)
    message = "Codex made no summary"
    facts = {"sessionId": source.session_id, "reason": "no summary in the scratch fork"}
    raise Refusal("codex_failed", message, facts)


def determinism_of(items: Sequence[Json]) -> Determinism:
    """Return who made a summary: only a provider leaves a `compaction` item."""
    return "provider" if any(kind_of(item) == "compaction" for item in items) else "model"


@frozen
class HookRunner:
    """The clock, ids and programs that the service calls.

    `new_ids` returns ordered UUIDs of version 7; `run` runs a hook in a folder; `find_codex`
    returns the path of the Codex CLI, `summarise` has it make a summary.
    """

    moment: Callable[[], datetime]
    new_ids: Callable[[datetime, int], tuple[str, ...]]
    run: Run
    find_codex: Callable[[], str | None]
    summarise: Summarise


@frozen
class Request:
    """A request; `placement` and `strategy` are validated later.

    `seconds` is the limit for a summary by Codex; None takes that of the settings, and so does
    `digest_tokens`, the budget of the digest.
    """

    session: str
    into: Into = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    seconds: float | None = None
    requested_by: RequestedBy = "user"
    why: str = "requested by the user"
    digest_tokens: int | None = None


@frozen
class Compacted:
    """The report of a compaction; a preview has no `compaction_id`, and `contents`.

    `session_id` is the session to resume, None for a new one that does not exist yet; `window` is
    the size of the window of its model, where it is known.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: Into
    strategy: Strategy
    determinism: Determinism
    placement: Placement
    built: Replacement
    windows: Windows
    window: int | None
    contents: Contents | None = None
    hooks: tuple[HookResult, ...] = ()

    @property
    def standing_context(self) -> str:
        """Return a sentence about the standing context (CKP-31)."""
        return STANDING_CONTEXT[self.placement]


def session_live(session_id: str) -> Refusal:
    """Return the refusal to write to a session that another process has loaded."""
    message = f"session {session_id} is open in another process, which would not notice"
    hint = "Close it in Codex, or compact into a new session."
    return Refusal("session_live", message, {"sessionId": session_id, "hint": hint})


def summary_outdated(session_id: str) -> Refusal:
    """Return the refusal to install a summary of a session that changed since."""
    message = f"session {session_id} went on while Codex made its summary, so nothing is installed"
    return Refusal("conflict", message, {"sessionId": session_id, "reason": "gone_on"})


def no_preview(session_id: str, before: Figure, seconds: float) -> Refusal:
    """Return the refusal to preview a summary by a model."""
    size = f"{before.tokens} tokens ({before.source})"
    message = f"Codex makes this summary with its model, which no preview asks; now it is {size}"
    facts = {
        "sessionId": session_id,
        "strategy": "codex",
        "tokensBefore": before.tokens,
        "tokensBeforeSource": before.source,
        "seconds": seconds,
        "hint": "A compaction can be undone with uncompact.",
    }
    return Refusal("no_preview", message, facts)


_SENTENCES: dict[Reason, str] = {
    "turn_not_complete": "its last turn is open: it is running, waiting, or was cut off",
    "missing_context": "it holds nothing yet to continue from",
    "not_smaller": "a replacement would not be smaller than what it replaces",
    "item_too_large": "its handoff or newest message alone does not fit into the window",
    "unsupported_placement": "only the placements manual and pre_turn are offered",
    "below_threshold": "its window is not full enough",
}


def declined_by(declined: Declined, source: CompactionSource) -> Refusal:
    """Return the refusal for a replacement that the core did not build (JUN-45)."""
    facts = {"sessionId": source.session_id, **declined.facts}
    if declined.reason == "turn_not_complete":
        facts |= {"hint": "Let the turn end.", "canForce": not source.live}
    elif declined.reason == "not_smaller":
        facts["canForce"] = True
    sentence = f"session {source.session_id} is not compacted: {_SENTENCES[declined.reason]}"
    return Refusal(declined.reason, sentence, facts)


_EVENT, _IN_RECORDS = "PreCompact", "pre_compact"
"""The event in Codex's hooks, and in its records of who trusts and switches them."""

SAME_HASH_SINCE = (0, 147)
"""The first version of Codex whose `comp_hash` for a model is still that of 0.169."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.")

_TAIL = 1 << 18
"""How many bytes at the end of a newer session are searched for its settings."""


def cautions(
    sessions: Sessions, source: CompactionSource, into: Into
) -> Iterator[CompactionWarning]:
    """Yield what is to be said of this compaction."""
    if count := _own_hooks(sessions.catalogue.store.place):
        which = "hook does" if count == 1 else "hooks do"
        why = "Codex runs such hooks only before its own compactions."
        yield CompactionWarning("own_hooks", count, f"Your {_EVENT} {which} not run: {why}")
    if into == "in-place" and _is_compacted_again(sessions, source):
        message = "Codex may compact this session again, with a model call, when it is resumed:"
        end = "its rules have changed since. In a new session it does not."
        yield CompactionWarning("compacted_again", 1, f"{message} {end}")


def _own_hooks(codex_home: str) -> int:
    """Return how many hooks of a person's own Codex calls before a compaction, by its files.

    Neither ours count nor those that are switched off; a file that cannot be read has none.
    """
    count, off = 0, frozenset[str]()
    for name in ("config.toml", "hooks.json"):
        path = os.path.join(codex_home, name)
        try:
            text = (file_edit.read(path).data or b"").decode()
            is_config = name == "config.toml"
            found = (
                config.found_in(text) if is_config else config.Found(hooks.found_in(text or "{}"))
            )
        except (CannotEdit, OSError, UnicodeDecodeError):
            continue
        if found.hooks_off:
            return 0
        off |= found.switched_off
        own = (hook for hook in found.hooks.all if hook.event == _EVENT and not hook.calls_us)
        count += sum(f"{path}:{_IN_RECORDS}:{hook.place}" not in off for hook in own)
    return count


def _is_compacted_again(sessions: Sessions, source: CompactionSource) -> bool:
    """Return whether Codex compares the session's `comp_hash` with another one on resume.

    The newer one stands in the newest later session of the same model; without such a session the
    version of Codex that began this one decides.
    """
    settings = object_of(source.traced.last_settings)
    ours = text_of(settings.get("comp_hash"))
    if ours is None:
        return False
    model, since = text_of(settings.get("model")), source.row.updated_at or ""
    rows = sessions.catalogue.store.rows().values()
    later = [row for row in rows if row.model == model and (row.updated_at or "") > since]
    newest = max(later, key=lambda row: row.updated_at or "", default=None)
    theirs = None if newest is None else _hash_in(sessions, newest)
    if theirs is not None:
        return theirs != ours
    began = _VERSION.match(source.row.cli_version or "")
    return began is not None and (int(began[1]), int(began[2])) < SAME_HASH_SINCE


def _hash_in(sessions: Sessions, row: Row) -> str | None:
    """Return the `comp_hash` in the last settings of a session, if its end tells."""
    if row.rollout.compressed:
        return None
    try:
        begin = max(0, row.rollout.size - _TAIL)
        data = bytes_between(sessions.catalogue.reader, row.path, begin, row.rollout.size)
    except UnreadableSource:
        return None
    for line in reversed(data.split(b"\n")):
        value = object_of(load(line) if b'"turn_context"' in line else None)
        if value.get("type") == "turn_context":
            return text_of(object_of(value.get("payload")).get("comp_hash"))
    return None
