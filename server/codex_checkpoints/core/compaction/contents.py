"""What a replacement holds, part by part, for a person who looks before it is installed (DIG-9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints.core.compaction.building import Fate, Replacement
from codex_checkpoints.core.compaction.handoff import handoff
from codex_checkpoints.core.digest.composing import LEAST_TOKENS, Digest
from codex_checkpoints.core.history.items import texts
from codex_checkpoints.core.history.tokens import of_item
from codex_checkpoints.values import frozen


@frozen
class KeptMessage:
    """A message from the user as a replacement has it; `ref` names its record for `recall`.

    `cutTokens` is how much was cut out of its middle.
    """

    ref: str | None
    at: str | None
    text: str
    tokens: int
    cut_tokens: int


@frozen
class CompactionWarning:
    """A warning about a compaction: a code, how many things it concerns, and a sentence."""

    code: str
    count: int
    message: str


@frozen
class Contents:
    """The parts of a replacement; `stateTokens` is what the how-to text and the view take."""

    messages: tuple[KeptMessage, ...]
    view: str
    state_tokens: int
    digest: Digest
    warnings: tuple[CompactionWarning, ...]


def contents_of(
    built: Replacement, *, live: bool, more: Iterable[CompactionWarning] = ()
) -> Contents:
    """Return the parts of a replacement of ours; `live`: Codex has the session open.

    `more` are warnings of what the replacement does not show.
    """
    messages: list[KeptMessage] = []
    for item, place in zip(built.items[:-1], built.origins, strict=False):
        piece = built.report.pieces[place or 0]
        ref = piece.ref and piece.ref.replace("seq:", "#")
        text = "\n".join(texts(item))
        messages.append(KeptMessage(ref, piece.at, text, of_item(item), piece.cut_tokens))
    state, warnings = of_item(handoff(built.view)), (*_warnings(built, live=live), *more)
    return Contents(tuple(messages), built.view, state, built.digest, warnings)


def _warnings(built: Replacement, *, live: bool) -> Iterator[CompactionWarning]:
    fates = [piece.fate for piece in built.report.pieces]
    digest = built.digest
    if built.digest_refused:
        yield CompactionWarning(
            "digest_left_out",
            1,
            "The digest is left out: with it the replacement would be too large.",
        )
    elif not digest.text and 0 < digest.budget < LEAST_TOKENS:
        message = f"With fewer than {LEAST_TOKENS} tokens there is no digest."
        yield CompactionWarning("digest_too_small", 1, message)
    left: tuple[Fate, ...] = ("over_budget", "over_target")
    if gone := sum(fate in left for fate in fates):
        yield CompactionWarning("messages_left_out", gone, _said(gone, "left out: no room"))
    if cut := fates.count("truncated"):
        yield CompactionWarning("messages_cut", cut, _said(cut, "cut in the middle"))
    if live:
        yield CompactionWarning(
            "session_live",
            1,
            "Codex has this session open. Until it is closed there, it can only be compacted into"
            " a new session.",
        )


def _said(count: int, what: str) -> str:
    who = "1 of your messages is" if count == 1 else f"{count} of your messages are"
    return f"{who} {what}."
