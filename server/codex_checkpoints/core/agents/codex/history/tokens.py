"""Computes the use of a window, and the sizes above which to compact.

The file reports the tokens of the last model call; without a report they are estimated from the
bytes.  Each number carries its source.  Thresholds follow from the model's own window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import orjson
from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.history.items import Item
from codex_checkpoints.core.events import Tokens
from codex_checkpoints.core.fields import is_list, object_of, text_of

Source = Literal["reported", "estimated"]

IMAGE_BYTES = 7373
"""The bytes that an image counts as, whatever the size of its file."""

SEALED_OVERHEAD = 650
"""The bytes of encrypted thoughts on top of their content."""

UNKNOWN_WINDOW = 400_000
UNKNOWN_OUTPUT = 128_000
"""The sizes of a model that advertises none (JUN-19)."""


@frozen
class Figure:
    """A number of tokens, and whether the service reported it or we estimated it (JUN-28)."""

    tokens: int
    source: Source


_UNSCALED = 1000
_SCALES = (500, 1500)
"""The scale of an estimate in thousandths: 1, and the least and the most."""

_GROWN = 2_000
"""Growth of a history in tokens from which its reports give a scale."""


@frozen
class TokenReport:
    """The tokens that a call used, and our estimate of the history after its answer.

    `is_estimate`: Codex or we estimated them after a compaction.  `has_pages`: the call searched
    the web, so its tokens count pages that no later call sends.
    """

    history: int
    tokens: int
    is_estimate: bool = False
    has_pages: bool = False


@frozen
class Calibration:
    """The relation of the tokens in use to our estimate of a history.

    They are `overhead + scale x estimate`.  `overhead` is the part that Codex sends in addition to
    the history (instructions, tools, standing context), None if nothing usable was reported;
    `scale` is in thousandths.  `has_pages`: the newest report counts pages of a web search.
    """

    overhead: int | None = None
    scale: int = _UNSCALED
    has_pages: bool = False

    def in_use(self, history: int) -> int:
        """Return the tokens in use with a history of this estimate."""
        return (self.overhead or 0) + self.scaled(history)

    def scaled(self, tokens: int) -> int:
        """Return an estimate as the reports of the session would count it."""
        return tokens * self.scale // _UNSCALED


def calibrated(reports: Sequence[TokenReport]) -> Calibration:
    """Return the calibration by the reports of the current window, in order (rules, "Tokens").

    The first call gives the overhead: its tokens beyond its own messages.  The newest call gives
    the scale, if the history has grown since.  If the newest report is smaller than this overhead,
    the first one belongs to another history; then the newest gives the overhead.  A call that
    searched the web gives neither.
    """
    has_pages = bool(reports) and reports[-1].has_pages
    return evolve(
        _calibrated([each for each in reports if not each.has_pages]), has_pages=has_pages
    )


def _calibrated(reports: Sequence[TokenReport]) -> Calibration:
    """Return the calibration by the reports of calls without pages of a web search."""
    found = [each for each in reports if not each.is_estimate]
    if not found:
        estimate = max((each.tokens - each.history for each in reports[-1:]), default=0)
        return Calibration(estimate if estimate > 0 else None)
    first, last = found[0], found[-1]
    overhead = max(0, first.tokens - first.history)
    if overhead > last.tokens:
        return Calibration(max(0, last.tokens - last.history))
    if last.history - first.history < _GROWN:
        return Calibration(overhead)
    scale = (last.tokens - overhead) * _UNSCALED // last.history
    least, most = _SCALES
    return Calibration(overhead, min(max(scale, least), most))


@frozen
class Context:
    """The tokens in use; a `flagged` report exceeds the window and decides nothing.

    `history` is our estimate of the history.
    """

    tokens: int
    source: Source
    flagged: bool
    window: int | None
    history: int
    calibration: Calibration

    @property
    def beside(self) -> int | None:
        """Return the tokens in use besides the history, None if nothing was reported."""
        return self.calibration.overhead

    @property
    def usable(self) -> Figure:
        """Return the tokens in use, estimated where the report is impossible."""
        if self.flagged:
            return Figure(self.calibration.in_use(self.history), "estimated")
        return Figure(self.tokens, self.source)


def context(
    usage: Tokens | None, history: int, calibration: Calibration, *, stale: bool
) -> Context:
    """Return the tokens in use: the newest report, else the estimate (JUN-28, CKP-28, CKP-29).

    `history` is our estimate; `stale`: a window was opened after the report.
    """
    window = None if usage is None else usage.window
    if usage is None or stale or usage.total == 0:
        whole = calibration.in_use(history)
        return Context(whole, "estimated", False, window, history, calibration)  # noqa: FBT003
    source: Source = "estimated" if usage.is_estimate else "reported"
    return Context(usage.total, source, usage.is_impossible, window, history, calibration)


_PICTURE = re.compile(r"data:image/[^;,]*;base64,")


def of_items(items: Iterable[Item]) -> int:
    """Return the estimate of a history."""
    return sum(of_item(item) for item in items)


def of_item(item: Item) -> int:
    """Return the estimate of one item: ceil(bytes of its JSON / 4); blobs have their own rules."""
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
    """Return how much a part counts above (or below) its bytes."""
    image = text_of(object_of(part).get("image_url"))
    if image is not None and (found := _PICTURE.match(image)):
        return IMAGE_BYTES - (len(image) - found.end())
    sealed = text_of(object_of(part).get("encrypted_content"))
    return 0 if sealed is None else len(sealed) * 9 // 16 - len(sealed)


@lru_cache(1 << 8)  # thousands of sessions have few windows
def window_size(
    advertised: int | None, environment: str | None = None, setting: int = 0
) -> tuple[int | None, str]:
    """Return the size by the setting, else the environment, else as advertised (JUN-21).

    The second value is its source, as in `WindowBudget`.
    """
    named = size_in(environment)
    if setting > 0:
        return setting, "setting"
    if named is not None:
        return named, "environment"
    if advertised is not None and advertised > 0:
        return advertised, "advertised"
    return None, "unknown"


def size_in(variable: str | None) -> int | None:
    """Return the size in an environment variable; None if it is not a number."""
    number = None if variable is None else _NUMBER.fullmatch(variable)
    return None if number is None else int(number[0]) or None


_NUMBER = re.compile(r"\s*[0-9]{1,15}\s*", re.ASCII)


@frozen
class WindowBudget:
    """The size of a window, and the trigger and target of a compaction, in tokens.

    `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
    """

    window: int
    window_source: str
    reserve: int
    trigger: int
    target: int


@lru_cache(1 << 8)
def budget_of(
    advertised: int | None, environment: str | None = None, setting: int = 0
) -> WindowBudget:
    """Return the budget of a window, with room for an answer (JUN-18, JUN-19, JUN-20)."""
    size, source = window_size(advertised, environment, setting)
    window = size or UNKNOWN_WINDOW
    reserve = min(UNKNOWN_OUTPUT, window // 4)
    trigger = max(1, 3 * (window - reserve) // 4)
    return WindowBudget(window, source, reserve, trigger, max(1, 4 * trigger // 5))


OUTPUT_TOKENS = 12_000
"""The limit of a call's output if none is recorded with it."""


def approximate_tokens(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4), as Codex estimates (JUN-30)."""
    return -(-len(text.encode(errors="replace")) // 4)


def ends_of(text: str, tokens: int) -> tuple[str, str, str] | None:
    """Return the two ends of a text that is cut and the mark between; None if it fits."""
    raw = text.encode(errors="replace")
    budget = tokens * 4
    if len(raw) <= budget:
        return None
    gone = -(-(len(raw) - budget) // 4)
    left = budget // 2
    right = budget - left
    before = raw[:left].decode(errors="ignore")
    after = raw[len(raw) - right :].decode(errors="ignore") if right else ""
    return before, f"…{gone} tokens truncated…", after


def cut_text(text: str, tokens: int) -> str:
    """Return a text cut in its middle to `tokens`, the mark not counted."""
    ends = ends_of(text, tokens)
    return text if ends is None else "".join(ends)


def cut_output(item: Item, tokens: int) -> Item:
    """Return an output of a call, cut to a number of tokens."""
    output = item.get("output")
    if isinstance(output, str):
        return {**item, "output": cut_text(output, tokens)}
    return {**item, "output": _cut_parts(output, tokens)} if is_list(output) else item


def _cut_parts(parts: Sequence[object], tokens: int) -> list[object]:
    """Keep texts up to the limit; the one that crosses it is cut, later ones are dropped."""
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
