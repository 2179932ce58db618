"""What a branch is made of: the lines of its session file, and what it remembers.

A soft branch is the copied or referenced history of its source, a hard one begins with a pack as a
compaction into a new session does.  When any of it is written is known to `restoring`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from attrs import evolve

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.compaction.installed import (
    Moment,
    Naming,
    new_session,
    session_meta,
    source_of,
)
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.rollout.fields import Json, whole_of
from codex_checkpoints.service.restore.copied_history import (
    WindowNames,
    begins_with_head,
    copied_history,
    unchanged,
)
from codex_checkpoints.service.restore.plan import Plan, unreadable
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Copied, Item, NewThread, UnreadableSource


class BranchMaker:
    """Makes of plans what is to be written; new ids come from outside."""

    def __init__(self, sessions: Sessions, new_id: Callable[[], str]) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._new_id = new_id

    def thread(self, plan: Plan, branch_id: str, at: str) -> tuple[NewThread, Windows]:
        """Return the session file to be made, and its windows as far as they are known (WIN-13)."""
        row, first = plan.source.row, self._new_id()
        source = source_of(row.session_id, plan.cwd, plan.head, plan.tokens.window)
        moment = Moment(at, int(datetime.fromisoformat(at).timestamp() * 1000))
        if plan.pack is None:
            reader = self._sessions.catalogue.reader
            meta = {**session_meta(branch_id, first, source, moment), **_inherited(plan.head)}
            windows = Windows(plan.window_id, first, first)
            if plan.reference is not None:
                meta |= plan.reference.as_head()
                return NewThread(meta, _of(plan, unchanged(reader, plan.parts))), windows
            names = WindowNames(first, self._new_id)
            lines = copied_history(reader, plan.parts, plan.until, names)
            return NewThread(meta, _of(plan, lines)), windows
        naming = Naming(self._name(plan), self._new_id(), self._new_id())
        ids = (branch_id, first, self._new_id())
        made = new_session(_message(plan.pack.text), source, naming, moment, ids)
        items = tuple(Item(line.type, line.payload) for line in made.lines)
        windows = Windows(plan.window_id, made.chain.first, made.chain.current)
        return NewThread(made.meta, items), windows

    def updates(self, plan: Plan) -> Iterable[dict[str, object]]:
        """Yield what a soft branch remembers; a hard one has it in its seed (AGN-46)."""
        if plan.pack is not None:
            return
        reader = self._sessions.catalogue.reader
        # Without a head of its own the source counts one line less than its branch.
        try:
            moved = not plan.paginated and not begins_with_head(reader, plan.parts[0].path)
        except UnreadableSource as error:
            raise unreadable(plan.source.row, str(error)) from error
        for update in plan.updates:
            yield self._update(evolve(update, seq=update.seq + moved))

    def _name(self, plan: Plan) -> str:
        """Return how a hard branch is called in lists.

        The label, then the title of the source.  A title that is only the first message of the
        conversation stays behind, unless that is the task (AGN-39).
        """
        marker, task = plan.source.marker, plan.goods.checkpoint.task
        title = self._sessions.catalogue.store.name_of(plan.source.row) or ""
        if not title and task is not None:
            first = self._sessions.title(plan.source.row)
            title = task.text if first == task.text else ""
        title = value(title, MAX_VALUE_CHARS)
        parts = dict.fromkeys(part for part in (marker.label, title) if part)
        name = value(": ".join(parts), MAX_VALUE_CHARS)
        return name or f"Restored from checkpoint {marker.checkpoint_id}"

    def _update(self, update: Update) -> dict[str, object]:
        where: dict[str, object] = {"seq": update.seq, "turnId": update.turn_id, "at": update.at}
        if update.revokes is not None:
            kind, name = update.revokes
            return {"revoke": {"kind": kind, "id": name}} | where
        payload: dict[str, object] = {"payload": update.payload, "hashes": dict(update.hashes)}
        return {"updateId": self._new_id()} | where | payload


def _of(plan: Plan, lines: Iterator[Item | Copied]) -> Iterator[Item | Copied]:
    """Yield lines of the source; what is wrong with them is wrong with it, not with the branch."""
    try:
        yield from lines
    except UnreadableSource as error:
        raise unreadable(plan.source.row, str(error)) from error


def _inherited(head: Json) -> Json:
    """Return up to where a subagent's lines are those of its parent: they are so in a copy, too."""
    start = whole_of(head.get("subagent_history_start_ordinal"))
    return {} if start is None else {"subagent_history_start_ordinal": start}


def _message(pack: str) -> tuple[Json, ...]:
    """Return the replacement that a hard branch begins with: the pack, or nothing."""
    if not pack:
        return ()
    part = {"type": "input_text", "text": pack}
    return ({"type": "message", "role": "user", "content": [part]},)
