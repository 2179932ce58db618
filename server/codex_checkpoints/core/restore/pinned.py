"""Finds the texts of a session's pins, as a digest quotes them (rules, "Digest")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.injected_text import without_payloads
from codex_checkpoints.core.checkpoint.records import Checkpoint, status_of
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.recall.entries import Entry
from codex_checkpoints.core.restore.markers import AnyPin, Pin


def pinned_texts(
    pins: Iterable[AnyPin], messages: Mapping[str, Entry], notes: Checkpoint | None
) -> tuple[str, ...]:
    """Return the text of each pin in their order; it is empty if its record is gone.

    `messages` are the pinned ones by their anchors, `notes` is the checkpoint of the session.
    """
    return tuple(_text(pin, messages, notes) for pin in pins)


def _text(pin: AnyPin, messages: Mapping[str, Entry], notes: Checkpoint | None) -> str:
    if isinstance(pin, Pin):
        lines = "" if pin.start is None else f" lines {pin.start}-{pin.end}"
        return f"file {pin.uri}{lines}"
    match pin.kind:
        case "text":
            return f"text: {pin.value}"
        case "note":
            return "\n".join(_notes(pin.value, notes)) if notes is not None else ""
        case "message":
            found = messages.get(pin.value)
            return "" if found is None else f"message {pin.value}, {found.kind}: {_said(found)}"


def _said(message: Entry) -> str:
    text = message.text
    if message.kind == "user":
        text = without_payloads(injected_text.request_of(text), [])[0]
    return ends_of(text.strip())


def _notes(name: str, checkpoint: Checkpoint) -> Iterator[str]:
    """Yield the fact and the decision of a name."""
    fact = checkpoint.facts.get(name)
    if fact is not None:
        suspect = status_of(fact, checkpoint.artifacts) == "SUSPECT"
        yield f"fact {name}{' (SUSPECT)' if suspect else ''}: {fact.value}"
    for each in checkpoint.decisions:
        if each.decision_id == name:
            yield f"decision {name}: {each.decision} — {each.rationale}"
