"""The request of a compaction, the hooks it asks, its result and its refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import orjson
from attrs import frozen

from codex_checkpoints.codex.app_server import ProgramResult, never
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.agents.codex.history.item_kinds import ItemKind
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.compaction.contents import CompactionContents
from codex_checkpoints.core.compaction.records import CompactionWindows, Into, RequestedBy
from codex_checkpoints.core.compaction.replacement import Declined, Reason
from codex_checkpoints.core.compaction.replacement_report import CompactionPiece
from codex_checkpoints.core.fields import is_object, text_of
from codex_checkpoints.service.compaction.source import CompactionSource
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.settings import CompactionHook

MOST_REASON = 500
_KEYS = {"continue", "stopReason", "suppressOutput", "systemMessage"}
"""The fields that Codex 0.169 accepts from its own hooks around a compaction."""

Outcome = Literal["passed", "blocked", "failed", "timed_out", "not_started", "garbage"]
IsCancelled = Callable[[], bool]
Run = Callable[[Sequence[str], bytes, float, str, IsCancelled], ProgramResult]


@frozen
class HookOutcome:
    """The result of a hook; `number` counts the hooks of one event from 1."""

    number: int
    outcome: Outcome
    reason: str | None = None


@frozen
class HookEvent:
    """The hooks of one event, how to run them, and in which folder."""

    hooks: tuple[CompactionHook, ...]
    run: Run
    folder: str

    def ask(
        self, facts: Mapping[str, object], cancelled: IsCancelled
    ) -> tuple[tuple[HookOutcome, ...], HookOutcome | None]:
        """Run the hooks in order until one stops the operation; return all results, and that one.

        A hook that fails stops it too, unless the settings say `continue` (CKP-12).  Raises
        `Cancelled` if the caller cancelled; the running hook is then ended.
        """
        results: list[HookOutcome] = []
        for number, hook in enumerate(self.hooks, 1):
            answer = self._result(number, hook, facts, cancelled)
            results.append(answer)
            passes = answer.outcome == "passed"
            if answer.outcome == "blocked" or not (passes or hook.on_failure == "continue"):
                return tuple(results), answer
        return tuple(results), None

    def notify(self, facts: Mapping[str, object]) -> tuple[HookOutcome, ...]:
        """Run all hooks and ignore their answers."""
        return tuple(
            self._result(number, hook, facts, never) for number, hook in enumerate(self.hooks, 1)
        )

    def _result(
        self, number: int, hook: CompactionHook, facts: Mapping[str, object], cancelled: IsCancelled
    ) -> HookOutcome:
        given, seconds = orjson.dumps(facts) + b"\n", hook.timeout_seconds
        ran = self.run(hook.command, given, seconds, self.folder, cancelled)
        match ran.end:
            case "cancelled":
                raise Cancelled
            case "timed_out" | "not_started" as how:
                return HookOutcome(number, how)
            case "exited":
                if ran.code != 0 and ran.output is not None:
                    return HookOutcome(number, "failed", f"exit code {ran.code}")
                return _answer(number, ran.output)


def _answer(number: int, output: bytes | None) -> HookOutcome:
    if output is None:
        return HookOutcome(number, "garbage")
    if not output.strip():
        return HookOutcome(number, "passed")
    try:
        answer: object = orjson.loads(output)
    except orjson.JSONDecodeError:
        return HookOutcome(number, "garbage")
    # An unknown field may be meant to stop the compaction, so such an answer is invalid.
    if (
        not is_object(answer)
        or not answer.keys() <= _KEYS
        or type(answer.get("continue", True)) is not bool
    ):
        return HookOutcome(number, "garbage")
    if answer.get("continue", True):
        return HookOutcome(number, "passed")
    reason = text_of(answer.get("stopReason"))
    return HookOutcome(number, "blocked", value(reason, MOST_REASON) if reason else None)


def without_reasons(results: Sequence[HookOutcome]) -> list[dict[str, object]]:
    """Return hook results without their reasons, which are other people's texts."""
    return [{"number": each.number, "outcome": each.outcome} for each in results]


Summarise = Callable[[str, str, str | Excerpt, float, IsCancelled], str]
"""Lets Codex compact a fork of a home's thread, with a timeout; returns the fork's id."""


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
class CompactionRequest:
    """A request; `placement` and `strategy` are validated later.

    `seconds` is the timeout for a summary by Codex, `digest_tokens` the budget of the digest; None
    takes the setting.
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
    """A compaction that was done, or a preview (`compactionId` is null), which has `contents`.

    `sessionId` is the one to resume, `replacement` the history that Codex sends from now on.
    `tokensBefore`, `tokensAfter` and `bound`, its limit, count everything in use; `tokensBeside` of
    each is the part besides the history (instructions, tools and standing context), null if the
    session reported nothing; then these figures are only the history.  `tokensAfter` is
    `tokensBeside` plus `tokensScale` thousandths of the estimates of everything kept, added and
    sent again.  `tokensAdded` is the size of the new items: handoff or summary, goal, plan;
    `digestTokens` the size of the digest in it.  `tokensSentAgain` is the standing context that the
    next turn sends again.  `remark` is `cut_off` if the last turn was cut off, else `saves_nothing`
    or `saves_little` if less than a tenth is saved, else null; `remarkText` says it in sentences,
    and after a compaction whether a goal stays with the old session.  `sizeText` says the limit
    and `tokensBeside` in sentences; `headline` is for a notification.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: str
    strategy: str
    determinism: str
    placement: str
    standing_context: str
    replacement: tuple[dict[str, Any], ...]
    tokens_before: int
    tokens_before_source: str
    tokens_after: int
    tokens_after_source: str
    tokens_beside: int | None
    tokens_scale: int
    tokens_added: int
    tokens_sent_again: int
    remark: str | None
    remark_text: str | None
    bound: int
    size_text: str
    headline: str
    digest_tokens: int
    context_window: int | None
    kinds_before: Mapping[ItemKind, int]
    kinds_after: Mapping[ItemKind, int]
    kept: tuple[CompactionPiece, ...]
    dropped: tuple[CompactionPiece, ...]
    truncated: tuple[CompactionPiece, ...]
    windows: CompactionWindows
    hooks: tuple[HookOutcome, ...]
    contents: CompactionContents | None
    resume: str | None


def session_live(session_id: str) -> Refusal:
    """Return the refusal to write to a session that another process has loaded."""
    message = f"session {session_id} is open in another process, which would not see the change"
    hint = "Close it in Codex, or compact into a new session."
    return Refusal("session_live", message, {"sessionId": session_id, "hint": hint})


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
        cut_off = "If Codex no longer works on it, it was cut off."
        hint = "Let Codex finish it, or stop it there." if source.live else cut_off
        facts |= {"hint": hint, "canForce": not source.live}
    elif declined.reason == "not_smaller":
        facts["canForce"] = True
    why = _SENTENCES[declined.reason]
    if declined.facts.get("reason") == "no_request":
        why = "no request, goal or plan of it can be read, so a replacement would keep nothing"
    sentence = f"session {source.session_id} is not compacted: {why}"
    return Refusal(declined.reason, sentence, facts)
