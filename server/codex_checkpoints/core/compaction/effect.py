"""Whether lines at the end of a session do what they are for, told before they are written (JUN-2).

Codex looks at a session from its end, in stretches that each end where a task began, and a rollback
takes a whole stretch with it, also what stands behind the rollback.  So a window that is opened
behind one, with no task begun in between, never counts; in a task of its own it does.  Which form
does it is asked of the rules of `core.history` alone: the lines are read behind what the first pass
found, and the session itself is not read again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import evolve

from codex_checkpoints.core.compaction.installed import Line
from codex_checkpoints.core.history.choice import choose
from codex_checkpoints.core.history.items import Item
from codex_checkpoints.core.history.rebuild import Rebuild
from codex_checkpoints.core.history.survey import Outline, Survey
from codex_checkpoints.core.rollout.fields import Json

Form = tuple[Line, ...]
"""Lines as they would be appended to a session."""


def effective(outline: Outline, forms: Sequence[Form], items: Sequence[Json]) -> Form | None:
    """Return the first form by which the history of a session becomes these items, if one does.

    `outline` is what the first pass found of the session.
    """
    return next((form for form in forms if _history(outline, form) == tuple(items)), None)


def _history(outline: Outline, form: Form) -> tuple[Item, ...] | None:
    """Return the history that lines install behind a session, None where they install none."""
    data = b"".join(map(_written, form))
    survey = Survey()
    survey.reader.feed(data)
    added = survey.outline().marks
    choice = choose(evolve(outline, marks=(*outline.marks, *added)))
    if choice.base is None or all(choice.base is not mark for mark in added):
        return None
    rebuild = Rebuild(choice, choice.base.place)
    rebuild.reader.feed(data[choice.base.place.offset :])
    return rebuild.result().items


def _written(line: Line) -> bytes:
    """Return a line as a store writes it, but for what a store adds.

    What is no JSON to Codex, as a number beyond 64 bits, is left for the reader to pass over.
    """
    whole = {"timestamp": "", "type": line.type, "payload": dict(line.payload)}
    return json.dumps(whole, separators=(",", ":")).encode("ascii") + b"\n"
