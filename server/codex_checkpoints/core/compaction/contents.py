"""Describes a finished replacement, for its record and for a preview; chooses nothing (DIG-9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import AUTHORS, kind_of
from codex_checkpoints.core.agents.codex.history.items import texts
from codex_checkpoints.core.agents.codex.history.tokens import of_item
from codex_checkpoints.core.compaction.records import Counts, Remaining
from codex_checkpoints.core.compaction.replacement import Replacement
from codex_checkpoints.core.compaction.replacement_report import Fate, ReplacementReport, counted
from codex_checkpoints.core.digest.allocation import LEAST_TOKENS
from codex_checkpoints.core.digest.render import Digest


def remaining(built: Replacement) -> tuple[Remaining, ...]:
    """Return the record's fields of each item of a replacement, in order."""
    found: list[Remaining] = []
    for item, origin in zip(built.items, built.origins, strict=True):
        kind, tokens = kind_of(item), of_item(item)
        made = Remaining(AUTHORS[kind], kind, None, None, tokens)
        if origin is not None:
            old = built.report.pieces[origin]
            made = Remaining(made.author, kind, old.at, old.ref, tokens, old.cut_tokens)
        found.append(made)
    return tuple(found)


def counts_of(report: ReplacementReport) -> Counts:
    """Return the numbers of a report (CKP-16)."""
    dropped = report.dropped
    refs = [piece.ref for piece in dropped if piece.ref is not None]
    return Counts(
        kept=len(report.kept),
        truncated=len(report.truncated),
        dropped=len(dropped),
        dropped_kinds=counted([piece.kind for piece in dropped]),
        first_dropped=refs[0] if refs else None,
        last_dropped=refs[-1] if refs else None,
        payloads=sum(len(piece.left_out) for piece in report.pieces),
    )


@frozen
class KeptMessage:
    """A message from the user as a replacement has it; `ref` names its record for `recall`.

    `cutTokens` is the size of the cut in its middle.
    """

    ref: str | None
    at: str | None
    text: str
    tokens: int
    cut_tokens: int


@frozen
class CompactionWarning:
    """A warning about a compaction: a code, the number of affected items, and a sentence."""

    code: str
    count: int
    message: str


@frozen
class CompactionContents:
    """The parts of a replacement; `stateTokens` is the size of the how-to text and the view."""

    messages: tuple[KeptMessage, ...]
    view: str
    state_tokens: int
    digest: Digest
    warnings: tuple[CompactionWarning, ...]


def contents_of(
    built: Replacement, *, live: bool, more: Iterable[CompactionWarning] = ()
) -> CompactionContents:
    """Return the parts of a replacement of ours; `live`: Codex has the session open.

    `more` are warnings about facts that the replacement does not show.
    """
    messages: list[KeptMessage] = []
    for item, place in zip(built.items[:-1], built.origins, strict=False):
        text, tokens = "\n".join(texts(item)), of_item(item)
        if place is None:  # a request that is not a user message
            messages.append(KeptMessage(None, None, text, tokens, 0))
            continue
        piece = built.report.pieces[place]
        ref = piece.ref and piece.ref.replace("seq:", "#")
        messages.append(KeptMessage(ref, piece.at, text, tokens, piece.cut_tokens))
    state = of_item(built.items[-1]) - built.digest.tokens
    warnings = (*_warnings(built, live=live), *more)
    return CompactionContents(tuple(messages), built.view, state, built.digest, warnings)


def _warnings(built: Replacement, *, live: bool) -> Iterator[CompactionWarning]:
    fates = [piece.fate for piece in built.report.pieces]
    digest = built.digest
    if built.digest_refused:
        yield CompactionWarning(
            "digest_left_out",
            1,
            "The digest is left out: with it the summary would be too large.",
        )
    elif not digest.text and 0 < digest.budget < LEAST_TOKENS:
        message = f"With fewer than {LEAST_TOKENS} tokens there is no digest."
        yield CompactionWarning("digest_too_small", 1, message)
    left: tuple[Fate, ...] = ("over_budget", "over_target")
    if gone := sum(fate in left for fate in fates):
        subject = "1 of your messages is" if gone == 1 else f"{gone} of your messages are"
        message = f"{subject} left out for lack of room."
        yield CompactionWarning("messages_left_out", gone, message)
    if merged := fates.count("merged"):
        one = "1 of your messages repeats a later one and appears once."
        many = f"{merged} of your messages repeat a later one and appear once."
        text = one if merged == 1 else many
        yield CompactionWarning("messages_merged", merged, text)
    if cut := fates.count("truncated"):
        many = f"{cut} long messages were shortened."
        text = "One long message was shortened." if cut == 1 else many
        yield CompactionWarning("messages_cut", cut, text)
    if live:
        yield CompactionWarning(
            "session_live",
            1,
            "Codex has this session open. Until it is closed there, it can only be compacted into"
            " a new session.",
        )
