"""Hooks around a compaction: what they are told, what they may say, what comes of one that fails.

A hook is a program that the user named in `config.toml`.  One that runs before may stop the
operation; one that runs after observes.  Both are told what Codex tells its own `PreCompact` and
`PostCompact` hooks, as JSON on stdin, and both answer as those do: with nothing, or with a JSON
object whose `continue` is false and whose `stopReason` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import orjson

from codex_checkpoints.codex.app_server import nobody
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.fields import is_object, text_of
from codex_checkpoints.hook_process import Ran
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.settings import Hook
from codex_checkpoints.values import frozen

MOST_REASON = 500
_WORDS = {"continue", "stopReason", "suppressOutput", "systemMessage"}
"""What Codex 0.169 lets its own hooks around a compaction say."""

Outcome = Literal["passed", "blocked", "failed", "timed_out", "not_started", "garbage"]
IsCancelled = Callable[[], bool]
Run = Callable[[Sequence[str], bytes, float, str, IsCancelled], Ran]


@frozen
class Heard:
    """What came of a hook; `number` counts those of one event from 1.

    `outcome` is `passed`, `blocked`, `failed`, `timed_out`, `not_started` or `garbage`.
    """

    number: int
    outcome: Outcome
    reason: str | None = None


@frozen
class Ring:
    """The hooks of one event, how they are run, and in which folder of ours."""

    hooks: tuple[Hook, ...]
    run: Run
    folder: str

    def ask(
        self, told: Mapping[str, object], cancelled: IsCancelled
    ) -> tuple[tuple[Heard, ...], Heard | None]:
        """Run the hooks in order until one stops the operation; return that one, too.

        One that fails stops it as well, unless the settings say `continue` (CKP-12).  Raises
        `Cancelled` once nobody wants the operation any more; the hook that runs then is ended.
        """
        heard: list[Heard] = []
        for number, hook in enumerate(self.hooks, 1):
            answer = self._heard(number, hook, told, cancelled)
            heard.append(answer)
            passes = answer.outcome == "passed"
            if answer.outcome == "blocked" or not (passes or hook.on_failure == "continue"):
                return tuple(heard), answer
        return tuple(heard), None

    def tell(self, told: Mapping[str, object]) -> tuple[Heard, ...]:
        """Run all hooks, whatever they say: what they observe has happened."""
        return tuple(
            self._heard(number, hook, told, nobody) for number, hook in enumerate(self.hooks, 1)
        )

    def _heard(
        self, number: int, hook: Hook, told: Mapping[str, object], cancelled: IsCancelled
    ) -> Heard:
        given, seconds = orjson.dumps(told) + b"\n", hook.timeout_seconds
        return _read(number, self.run(hook.command, given, seconds, self.folder, cancelled))


def _read(number: int, ran: Ran) -> Heard:
    match ran.end:
        case "cancelled":
            raise Cancelled
        case "timed_out" | "not_started" as how:
            return Heard(number, how)
        case "exited":
            if ran.code != 0 and ran.output is not None:
                return Heard(number, "failed", f"exit code {ran.code}")
            return _answer(number, ran.output)


def _answer(number: int, output: bytes | None) -> Heard:
    if output is None:
        return Heard(number, "garbage")
    if not output.strip():
        return Heard(number, "passed")
    try:
        said: object = orjson.loads(output)
    except orjson.JSONDecodeError:
        return Heard(number, "garbage")
    # What we do not know may be meant to stop us: such an answer counts as none.
    if (
        not is_object(said)
        or not said.keys() <= _WORDS
        or type(said.get("continue", True)) is not bool
    ):
        return Heard(number, "garbage")
    if said.get("continue", True):
        return Heard(number, "passed")
    reason = text_of(said.get("stopReason"))
    return Heard(number, "blocked", value(reason, MOST_REASON) if reason else None)
