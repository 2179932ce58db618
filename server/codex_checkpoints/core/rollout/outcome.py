"""How a command ended, by the item, the event or the answer that tells it."""

from __future__ import annotations

import re

from codex_checkpoints.core.rollout.fields import is_object, load, object_of, text_of
from codex_checkpoints.core.rollout.items import CommandRun
from codex_checkpoints.values import frozen

_HEAD = 1024
"""How many characters of an answer its headings may take."""

_HEADING = re.compile(r"(?:Exit code|Chunk ID|Wall time|Process exited|Process running|Command)\b")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_OUTPUT = "\nOutput:\n"


@frozen
class Outcome:
    """How a command ended; None where not known."""

    failed: bool | None = None
    exit_code: int | None = None
    printed: str | None = None


UNKNOWN = Outcome()


def outcome_of(run: CommandRun) -> Outcome:
    """Return how a command ended by its item or event."""
    if run.status in {"in_progress", "inProgress", "declined"}:
        return UNKNOWN
    failed = run.status == "failed" or run.exit_code not in {None, 0}
    return Outcome(failed, run.exit_code, run.printed)


def outcome_in(texts: tuple[str, ...]) -> Outcome:
    """Return how a command ended by the answer to its call."""
    text = "\n".join(texts)
    if text.startswith("{"):
        return _outcome_in_json(text)
    if not _HEADING.match(text):
        return Outcome(printed=text)
    cut = text.find(_OUTPUT, 0, _HEAD)
    head, printed = (text[:_HEAD], None) if cut < 0 else (text[:cut], text[cut + len(_OUTPUT) :])
    found = _CODE.search(head)
    if found is None:
        return Outcome(printed=printed)
    code = int(found[1])
    return Outcome(code != 0, code, printed)


def _outcome_in_json(text: str) -> Outcome:
    value = load(text.encode(errors="replace"))
    if not is_object(value) or "output" not in value:
        return Outcome(printed=text)
    printed, code = text_of(value["output"]), object_of(value.get("metadata")).get("exit_code")
    if type(code) is not int:
        return Outcome(printed=printed)
    return Outcome(code != 0, code, printed)
