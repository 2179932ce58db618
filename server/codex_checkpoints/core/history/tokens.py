"""How much of a window is in use, and from where on it is too much.

What the last model call used is reported in the file; where nothing is, it is estimated by the
bytes.  Every number says which of the two it is.  Thresholds follow from the model's own window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import orjson

from codex_checkpoints.core.history.items import Item
from codex_checkpoints.core.rollout.fields import Json, is_list, object_of, text_of, whole_of
from codex_checkpoints.values import frozen

Source = Literal["reported", "estimated"]

IMAGE_BYTES = 7373
"""What an image counts, however large its file is."""

SEALED_OVERHEAD = 650
"""What sealed thoughts hold beside what is in them."""

UNKNOWN_WINDOW = 400_000
UNKNOWN_OUTPUT = 128_000
"""What is assumed of a model that tells nothing (JUN-19)."""


# --- what is in use ------------------------------------------------------------------------------


@frozen
class Usage:
    """One report: the tokens of the last call, those of its input, and the window."""

    total: int
    input: int | None
    window: int | None

    @property
    def is_estimate(self) -> bool:
        """Return whether Codex estimated this itself, as it does after a compaction (JUN-28)."""
        return self.input == 0 and self.total > 0

    @property
    def is_impossible(self) -> bool:
        """Return whether more is in use than the window holds (ROL-9)."""
        return self.window is not None and self.total > self.window


@frozen
class Context:
    """What is in use: `tokens` None where it is not known; `flagged` values decide nothing."""

    tokens: int | None
    source: Source
    flagged: bool
    window: int | None


def usage_of(payload: Json) -> Usage | None:
    """Read a `token_count`, None for one that tells nothing of the last call (ROL-9)."""
    info = object_of(payload.get("info"))
    last = object_of(info.get("last_token_usage"))
    total = whole_of(last.get("total_tokens"))
    if total is None:
        return None
    window = whole_of(info.get("model_context_window"))
    return Usage(total, whole_of(last.get("input_tokens")), window)


def context(usage: Usage | None, estimate: int | None, *, stale: bool) -> Context:
    """Return what is in use: the newest report, else the estimate (JUN-28, CKP-28, CKP-29).

    `stale` says that a window was opened after the report.
    """
    window = None if usage is None else usage.window
    if usage is None or stale or usage.total == 0:
        return Context(estimate, "estimated", flagged=False, window=window)
    source: Source = "estimated" if usage.is_estimate else "reported"
    return Context(usage.total, source, usage.is_impossible, window)


# --- estimates (JUN-30) --------------------------------------------------------------------------

_PICTURE = re.compile(r"data:image/[^;,]*;base64,")


def of_text(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode(errors="replace")) // 4)


def of_items(items: Iterable[Item]) -> int:
    """Return the estimate of a history: the sum of those of its items."""
    return sum(of_item(item) for item in items)


def of_item(item: Item) -> int:
    """Return the estimate of one item: ceil(bytes of its JSON / 4), blobs by their own rules."""
    kind, sealed = item["type"], text_of(item.get("encrypted_content"))
    if sealed is not None and kind in {"reasoning", "compaction", "context_compaction"}:
        size = max(0, len(sealed) * 3 // 4 - SEALED_OVERHEAD)
    else:
        size = len(orjson.dumps(item)) + sum(_correction(part) for part in _parts(item))
    return -(-size // 4)


def _parts(item: Item) -> list[object]:
    for name in ("content", "output"):
        parts = item.get(name)
        if is_list(parts):
            return parts
    return []


def _correction(part: object) -> int:
    """Return how much more or less than its bytes a part counts."""
    image = text_of(object_of(part).get("image_url"))
    if image is not None and (found := _PICTURE.match(image)):
        return IMAGE_BYTES - (len(image) - found.end())
    sealed = text_of(object_of(part).get("encrypted_content"))
    return 0 if sealed is None else len(sealed) * 9 // 16 - len(sealed)


# --- thresholds ----------------------------------------------------------------------------------


@frozen
class Thresholds:
    """From where on a window is compacted, and to what; all in tokens."""

    window: int
    output: int
    reserve: int
    trigger: int
    target: int


def thresholds(window: int | None, output: int | None = None) -> Thresholds:
    """Return the thresholds of a model by what it advertises (JUN-18, JUN-19, JUN-20)."""
    window = UNKNOWN_WINDOW if window is None or window <= 0 else window
    output = UNKNOWN_OUTPUT if output is None or output <= 0 else output
    reserve = min(output, window // 4)
    trigger = max(1, 3 * (window - reserve) // 4)
    return Thresholds(window, output, reserve, trigger, max(1, 4 * trigger // 5))


Chosen = Literal["setting", "environment", "advertised", "unknown"]


@frozen
class WindowSize:
    """The window that counts, where it comes from, and what was ignored on the way."""

    tokens: int | None
    source: Chosen
    ignored: tuple[str, ...] = ()


def window_size(
    advertised: int | None, environment: str | None = None, setting: object = None
) -> WindowSize:
    """Choose the window: the setting, else the environment, else what was advertised (JUN-21).

    A value that is no positive whole number is ignored, and named in `ignored`.
    """
    ignored: list[str] = []
    named: tuple[tuple[Chosen, object], ...] = (
        ("setting", setting),
        ("environment", environment),
    )
    for source, value in named:
        if value is None:
            continue
        tokens = _positive(value)
        if tokens is not None:
            return WindowSize(tokens, source, tuple(ignored))
        ignored.append(source)
    if advertised is not None and advertised > 0:
        return WindowSize(advertised, "advertised", tuple(ignored))
    return WindowSize(None, "unknown", tuple(ignored))


def _positive(value: object) -> int | None:
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"\s*[0-9]{1,15}\s*", value, re.ASCII) else None
    return value if type(value) is int and value > 0 else None


BYTES_A_TOKEN = 4
OUTPUT_TOKENS = 12_000
"""How much of an output Codex takes into a history when nothing else is said beside it."""


def approximate_tokens(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4), by which Codex counts what nobody reported (JUN-30)."""
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def ends_of(text: str, tokens: int) -> tuple[str, str, str] | None:
    """Return what stays of a text at its ends and the mark between; None where it fits."""
    raw = text.encode(errors="replace")
    budget = tokens * BYTES_A_TOKEN
    if len(raw) <= budget:
        return None
    gone = -(-(len(raw) - budget) // BYTES_A_TOKEN)
    left = budget // 2
    right = budget - left
    before = raw[:left].decode(errors="ignore")
    after = raw[len(raw) - right :].decode(errors="ignore") if right else ""
    return before, f"…{gone} tokens truncated…", after


def cut_text(text: str, tokens: int) -> str:
    """Return a text cut in its middle to a number of tokens, the mark not counted."""
    ends = ends_of(text, tokens)
    return text if ends is None else "".join(ends)


def cut_output(item: Item, tokens: int) -> Item:
    """Return an output of a call, cut to a number of tokens."""
    output = item.get("output")
    if isinstance(output, str):
        return {**item, "output": cut_text(output, tokens)}
    return {**item, "output": _cut_parts(output, tokens)} if is_list(output) else item


def _cut_parts(parts: Sequence[object], tokens: int) -> list[object]:
    """Let texts use up the limit in order; the one that does not fit is cut, later ones go."""
    kept: list[object] = []
    left, omitted = tokens, 0
    for part in parts:
        text = text_of(object_of(part).get("text"))
        if text is None:
            kept.append(part)
        elif not text:
            continue
        elif left == 0:
            omitted += 1
        else:
            cost = approximate_tokens(text)
            kept.append(part if cost <= left else _text_part(cut_text(text, left)))
            left = max(0, left - cost)
    if omitted:
        kept.append(_text_part(f"[omitted {omitted} text items ...]"))
    return kept


def _text_part(text: str) -> Item:
    return {"type": "input_text", "text": text}
