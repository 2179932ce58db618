"""Defines the typed items that `parsing` makes of lines, and reads the ends of calls in text."""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.events import (
    UNKNOWN,
    AgentWrote,
    CommandRun,
    GoalSet,
    Limits,
    Outcome,
    PlanMessage,
    ReviewMessage,
    RolledBack,
    SessionMeta,
    TaskEnded,
    TaskStarted,
    ThreadNamed,
    Tokens,
    ToolCall,
    ToolResult,
    Trouble,
    TurnContext,
    UserMessage,
)
from codex_checkpoints.core.fields import content_hash, is_object, load, object_of, text_of

Signal = Literal["unknown", "quiet", "given", "thought", "called", "answered", "compacted"]
"""The only fact that is needed of some lines.

`unknown`: this version does not know its kind.  `quiet`: a checkpoint keeps nothing of it.
`given`: the model was given context or a result.  `thought`, `called`, `answered`: it reasoned,
used a tool, wrote a message.  `compacted`: Codex replaced the context.
"""


@frozen
class ToolOutput:
    """The answer to a call, as text parts."""

    call_id: str
    texts: tuple[str, ...]


Item = (
    Signal
    | SessionMeta
    | TurnContext
    | TaskStarted
    | TaskEnded
    | RolledBack
    | UserMessage
    | Tokens
    | Limits
    | Trouble
    | GoalSet
    | PlanMessage
    | AgentWrote
    | ReviewMessage
    | ThreadNamed
    | ToolCall
    | ToolOutput
    | ToolResult
)

_HEAD = 1024
"""Characters of an answer that its headings may take."""

_HEADING = re.compile(r"(?:Exit code|Chunk ID|Wall time|Process exited|Process running|Command)\b")
_WALL_TIME = re.compile(r"^Wall time: ([0-9]{1,9}(?:\.[0-9]{1,9})?) seconds$", re.MULTILINE)
_LONGEST_TIME = 1e10
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_OUTPUT = "\nOutput:\n"
_NOT_DONE = re.compile(
    # In a sandbox, until 0.7x: with an exit code and both outputs, or with a reason alone.
    r"(?:failed in sandbox \w+ with )?execution error: "
    r"(?:[^\n]{0,200}?, exit code: (?P<code>-?[0-9]{1,10}), stdout: (?P<printed>.*), stderr: )?"
    r"|exec_command failed: |aborted by user after [0-9]",
    re.DOTALL,
)


_WHOLE_BELOW = 65_530
"""Of a longer output (in bytes) Codex records the first and last 32 KiB, unmarked; each end may
lose a part of a character.
"""

_UNSURE = re.compile(
    # Line ends that a terminal may have made; a remark of the shell.
    r"\r\n|\A(?:/\S*/)?(?:ba|z)?sh: |\AWarning: truncated output"
    # Codex's words where it has cut, in each of its versions.
    r"|\u2026[0-9]+ (?:chars|tokens) truncated\u2026|\.\.\. [0-9]+ bytes omitted"
    r"|\[\.\.\. (?:omitted|output truncated)"
)
_HINTS = ("\r\n", "sh: ", "truncated", "omitted")
"""Each such text contains one of these."""

_COUNTED = re.compile(r"^Original token count: ([0-9]{1,15})$", re.MULTILINE)


def outcome_of(run: CommandRun) -> Outcome:
    """Return how a command ended by its item or event."""
    if run.status in {"in_progress", "inProgress", "declined"}:
        return UNKNOWN
    failed = run.status == "failed" or run.exit_code not in {None, 0}
    return Outcome(failed, run.exit_code, run.printed)


def printed_whole(outcome: Outcome) -> str | None:
    """Return the hash of a command's output; None if it failed or may have printed more.

    An empty text proves nothing: it may not be recorded.
    """
    text = outcome.printed
    if outcome.exit_code != 0 or not text or _size(text) >= _WHOLE_BELOW:
        return None
    is_unsure = any(map(text.__contains__, _HINTS)) and _UNSURE.search(text)
    return None if is_unsure else content_hash(text)


def answered_whole(texts: tuple[str, ...]) -> str | None:
    """Return the same for the answer to a call, which may say how long the output was."""
    found = outcome_in(texts)
    head = "\n".join(texts)[:_HEAD].partition(_OUTPUT)[0]
    counted = _COUNTED.search(head)
    tokens = -(-_size(found.printed or "") // 4)
    if "\nTotal output lines: " in head or (counted and int(counted[1]) != tokens):
        return None
    return printed_whole(found)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def outcome_in(texts: tuple[str, ...]) -> Outcome:
    """Return how a command ended by the answer to its call."""
    text = "\n".join(texts)
    if text.startswith("{"):
        return _outcome_in_json(text)
    if not _HEADING.match(text):
        return _outcome_in_words(text)
    cut = text.find(_OUTPUT, 0, _HEAD)
    head, printed = (text[:_HEAD], None) if cut < 0 else (text[:cut], text[cut + len(_OUTPUT) :])
    found = _CODE.search(head)
    if found is None:
        return Outcome(printed=printed)
    code = int(found[1])
    return Outcome(code != 0, code, printed)


_OF_SCRIPT = re.compile(
    r"Script (?:completed|(failed))\n(?:[^\n]*\n){0,2}?Output:\n+|Script completed\Z"
)
"""The beginning of the answer to a code-mode script."""


def outcome_of_script(texts: tuple[str, ...]) -> Outcome:
    """Return how the only command of a code-mode script ended, by the answer to the script.

    If the script prints the whole result of the command, that is JSON with its exit code.
    """
    text = "\n".join(texts)
    found = _OF_SCRIPT.match(text)
    if found is None:
        return Outcome(printed=text)
    printed = text[found.end() :]
    if found[1]:
        return Outcome(failed=True, printed=printed)
    value = load(printed.encode(errors="replace")) if printed.startswith("{") else None
    if not is_object(value) or "output" not in value:
        return Outcome(printed=printed)
    code, output = value.get("exit_code"), text_of(value["output"])
    if type(code) is not int:
        return Outcome(printed=output)
    return Outcome(code != 0, code, output)


def seconds_in(texts: tuple[str, ...]) -> float | None:
    """Return how long a command took by the answer to its call."""
    text = "\n".join(texts)
    if found := _WALL_TIME.search(text[:_HEAD].partition(_OUTPUT)[0]):
        return float(found[1])
    if not text.startswith("{"):
        return None
    metadata = object_of(object_of(load(text.encode(errors="replace"))).get("metadata"))
    return number_of_seconds(metadata.get("duration_seconds"))


def number_of_seconds(value: object) -> float | None:
    """Return a duration in seconds, None for any other value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < _LONGEST_TIME else None


def _outcome_in_words(text: str) -> Outcome:
    """Return the outcome that an answer without headings begins with."""
    found = _NOT_DONE.match(text)
    if found is None:
        return Outcome(printed=text)
    if found["code"] is None:
        return Outcome(failed=True, printed=text)
    code, rest = int(found["code"]), text[found.end() :]
    return Outcome(code != 0, code, "\n".join((found["printed"], rest)))


def _outcome_in_json(text: str) -> Outcome:
    value = load(text.encode(errors="replace"))
    if not is_object(value) or "output" not in value:
        return Outcome(printed=text)
    printed, code = text_of(value["output"]), object_of(value.get("metadata")).get("exit_code")
    if type(code) is not int:
        return Outcome(printed=printed)
    return Outcome(code != 0, code, printed)
