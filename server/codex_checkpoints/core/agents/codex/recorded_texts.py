"""Gives the texts of a session that can be recalled: messages, calls, outputs, patches, summaries.

Instructions, reasoning and the heads of files are none of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from attrs import frozen

from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.call_texts import (
    DIALOG,
    OURS,
    json_in,
    output_of,
    script_of,
    secrets_of,
    without_answers,
)
from codex_checkpoints.core.agents.codex.derive import Deriver
from codex_checkpoints.core.agents.codex.items import outcome_in
from codex_checkpoints.core.agents.codex.own_messages import UNDO, is_ours
from codex_checkpoints.core.agents.codex.parsing import CALLS, OUTPUTS
from codex_checkpoints.core.agents.codex.reader import WORDS, Fold, Line
from codex_checkpoints.core.events import (
    UNKNOWN,
    AgentWrote,
    CommandRun,
    FilesChanged,
    GoalSet,
    Outcome,
    PlanMessage,
    RecordedText,
    Source,
    TaskEnded,
    TextKind,
    ToolRan,
    Trouble,
    UserMessage,
)
from codex_checkpoints.core.fields import Json, object_of, text_of, texts_of, words_of
from codex_checkpoints.core.shell import posix
from codex_checkpoints.core.turns import Turns

_MOST_CALLS = 1024


@frozen
class _Text:
    kind: TextKind
    text: str
    ids: tuple[str | None, ...]
    repeats: bool = False
    outcome: Outcome = UNKNOWN


class RecordedTexts(Fold):
    """The fold that gives the texts of the lines that `is_wanted` accepts.

    With `scripts` the text of a command's call is its script, else its arguments; `shorten` cuts
    the script or the arguments that an output is about.  The deriver takes each line first.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        deriver: Deriver,
        turns: Turns,
        give: Callable[[RecordedText], None],
        is_wanted: Callable[[Source], bool],
        shorten: Callable[[str], str],
        *,
        scripts: bool,
    ) -> None:
        """Begin before the first line, or near the end of a session."""
        self._deriver, self._known, self._turns = deriver, deriver.known, turns
        self._give, self._is_wanted, self._shorten = give, is_wanted, shorten
        self._scripts = scripts
        self._calls: dict[str | None, str] = {}
        self._looks: set[str | None] = set()
        self._secrets: dict[str | None, frozenset[str | None]] = {}
        """By call of a dialog, the ids of its secret questions."""

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Ask for the words of every line."""
        return WORDS

    def take(self, line: Line) -> None:
        """Give the texts of a line."""
        if line.passed_over or not self._known.counts(line.seq):
            return
        read = self._read(line)
        if not self._is_wanted(line):
            deque(read, 0)  # its information about a call serves other lines
            return
        for each in read:
            if each.text.strip():
                self._give(self._recorded(each, line))

    def _recorded(self, text: _Text, line: Line) -> RecordedText:
        of_call = text.ids[0] if text.ids else None
        return RecordedText(
            line.seq,
            line.stamp,
            line.named_turn,
            text.kind,
            text.text,
            tuple(each for each in text.ids if each),
            about="" if text.kind == "user" else self._calls.get(of_call, ""),
            repeats=text.repeats,
            in_history=text.kind == "user" and line.tag == "message",
            outcome=text.outcome,
        )

    def _read(self, line: Line) -> Iterator[_Text]:
        payload, tag = line.payload, line.tag
        call_id = text_of(payload.get("call_id"))
        if tag in CALLS:
            text = text_of(payload.get("arguments")) or text_of(payload.get("input")) or ""
            words = words_of(object_of(payload.get("action")).get("command"))
            text = text or " ".join(words or ())
            script = script_of(line.item) or text
            self._calls[call_id] = self._shorten(script)
            if len(self._calls) > _MOST_CALLS:
                del self._calls[next(iter(self._calls))]
            name = text_of(payload.get("name"))
            looks = name in OURS
            self._looks |= {call_id} if looks else set()
            if name == DIALOG and (secrets := secrets_of(json_in(text))):
                self._secrets[call_id] = secrets
            kind = "patch" if "*** Begin Patch" in text else "call"
            yield _Text(kind, script if self._scripts else text, (call_id,), looks)
        elif isinstance(self._deriver.item, PlanMessage) and self._deriver.item.approved:
            yield from self._told(payload, line)
        elif tag in OUTPUTS:
            looks = call_id in self._looks
            self._looks.discard(call_id)
            output, secrets = output_of(payload), self._secrets.pop(call_id, None)
            output = without_answers(output, secrets) if secrets else output
            ended = outcome_in((output,))
            # The readable form: very old ones are JSON.
            text = (ended.printed or output) if output.startswith("{") else output
            outcome = Outcome(ended.failed, ended.exit_code)
            yield _Text("output", text, (call_id,), looks, outcome)
        elif line.kind == "compacted":
            text = text_of(payload.get("message")) or ""
            if not (tag == UNDO or is_ours(text)):
                yield _Text("summary", injected_text.without_summary_start(text), ())
        elif tag == "message" and line.inner == "assistant":
            text = "\n".join(texts_of(payload.get("content")))
            yield _Text("assistant", text, (text_of(payload.get("id")),))
        elif tag == "message" and line.inner == "user":
            texts = texts_of(payload.get("content"))
            if injected_text.is_human(texts):
                repeats = self._known.typed
                yield _Text("user", "\n".join(texts), (text_of(payload.get("id")),), repeats)
        elif tag == "item_completed":
            yield from self._item(payload, line)
        else:
            yield from self._told(payload, line)

    def _told(self, payload: Json, line: Line) -> Iterator[_Text]:
        """Yield the other texts of an event or an item: requests, results, errors."""
        match self._deriver.item:
            case UserMessage() as item if injected_text.is_by_person(item):
                yield _Text("user", "\n".join(item.texts), (item.ref,))
            case GoalSet(objective=objective) if objective is not None:
                goal = self._turns.goal
                is_new = goal is not None and goal.seq == line.seq
                yield _Text("user", objective, (), repeats=not is_new)
            case PlanMessage(text=text, approved=True):
                yield _Text("user", text, ())
            case AgentWrote(text=text) as item if text:
                yield _Text("assistant" if item.is_answer else "user", text, (item.ref,))
            case Trouble(text=text) | TaskEnded(error=Trouble(text=text)):
                yield _Text("error", text, ())
            case _:
                if line.kind == "event_msg":
                    yield from self._item(payload, line)

    def _item(self, payload: Json, line: Line) -> Iterator[_Text]:
        """Yield the texts of an item or an event that ends a call.

        Response items repeat them, except for user messages.
        """
        value = object_of(payload.get("item")) or payload
        match line.item:
            case UserMessage() as item:
                yield _Text("user", "\n".join(item.texts), (item.ref,))
            case CommandRun() as item:
                printed = item.printed or ""
                self._calls[item.call_id] = self._shorten(posix.script_of(item.argv))
                text = f"$ {posix.script_of(item.argv)}\n{printed}"
                yield _Text("output", text, (item.call_id,), repeats=True)
            case FilesChanged() as item:
                yield _Text("patch", "\n".join(_diffs(value)), (item.call_id,), repeats=True)
            case ToolRan() as item:
                yield _Text("output", "\n".join(item.texts), (item.call_id,), repeats=True)
            case _:
                if value.get("type") == "AgentMessage":
                    text = "\n".join(texts_of(value.get("content")))
                    yield _Text("assistant", text, (text_of(value.get("id")),), repeats=True)


def _diffs(value: Json) -> Iterator[str]:
    """Yield the changes of files with patch headers."""
    for path, each in object_of(value.get("changes")).items():
        change = object_of(each)
        yield f"*** {str(change.get('type') or 'update').capitalize()} File: {path}"
        if (moved := text_of(change.get("move_path"))) is not None:
            yield f"*** Move to: {moved}"
        yield text_of(change.get("unified_diff")) or text_of(change.get("content")) or ""
