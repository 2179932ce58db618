"""The preferred door for a thread that is being written to (STO-6).

What comes in goes three ways, in this order: the persistence policy takes out what no rollout
holds, the store appends the rest, and what the new lines say is told to the store as a patch.  An
append that fails sends no patch, and a patch that fails undoes no append: what was derived is told
again by the next look.  Which threads have such a door is known to `thread_manager`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from codex_checkpoints.service.reading.rows import row_of
from codex_checkpoints.service.reading.session_file import Locate, SessionFile, open_session
from codex_checkpoints.threads.contract import (
    Appended,
    Copied,
    Item,
    Look,
    Patch,
    StoreError,
    ThreadStore,
)

logger = logging.getLogger(__name__)

KEPT = frozenset(
    {
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "token_usage_record",
        "retained_context",
        "dynamic_tools_updated",
        "security_risk_score",
        "realtime_item",
    }
)
"""What a rollout may hold behind its first line.

A second `session_meta` is not among it: Codex would forget everything before it.
"""

TRANSIENT = {
    "event_msg": frozenset(
        {
            "agent_message_content_delta",
            "agent_message_delta",
            "agent_reasoning_delta",
            "agent_reasoning_raw_content_delta",
            "apply_patch_approval_request",
            "background_event",
            "error",
            "exec_approval_request",
            "exec_command_begin",
            "exec_command_end",
            "exec_command_output_delta",
            "item_started",
            "mcp_tool_call_begin",
            "patch_apply_begin",
            "plan_delta",
            "plan_update",
            "reasoning_content_delta",
            "reasoning_raw_content_delta",
            "session_configured",
            "stream_error",
            "turn_diff",
            "undo_completed",
            "undo_started",
            "warning",
        }
    ),
    "response_item": frozenset({"additional_tools", "compaction_trigger", "ghost_snapshot"}),
}
"""Kinds by envelope that Codex sends to those who look on, and writes nowhere."""


def is_kept(item: Item | Copied) -> bool:
    """Return whether an item belongs into a rollout; a line copied from one does."""
    if isinstance(item, Copied):
        return True
    return item.type in KEPT and item.payload.get("type") not in TRANSIENT.get(item.type, ())


class Observer:
    """Turns what was appended to one thread into patches, for that thread alone (STO-7)."""

    def __init__(self, session: SessionFile, locate: Locate) -> None:
        """Stand where the thread ends now."""
        self._session = session
        self._locate = locate

    def patches(self, appended: Appended) -> tuple[Patch, ...]:
        """Return what there is to tell of the thread with its new lines; only those are read.

        Where the rollout lies elsewhere now, since it was unpacked, or where a later one has become
        the current one, that is read from its beginning.  Raises `UnreadableSource`.
        """
        before, now = self._session, appended.rollout
        if before.path == now.path:
            self._session = before.read_on(self._locate)
            return (Patch(row=row_of(now, self._session)),)
        self._session = open_session(before.reader, now.path, self._locate, seeds=before.seeds)
        told = Patch(row=row_of(now, self._session))
        if before.reader.identify(before.path).rollout_id != now.rollout_id:
            return (told,)
        return (Patch(row=None, of=before.path), told)


class LiveThread:
    """One thread that is loaded in this process."""

    def __init__(self, store: ThreadStore, thread_id: str, observer: Observer) -> None:
        """Take a thread of this store and who observes it."""
        self.thread_id = thread_id
        self._store = store
        self._observer = observer

    def append(
        self,
        items: Iterable[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended | None:
        """Append what belongs into the rollout; durable on return, None where nothing does.

        Raises as `ThreadStore.append_items`; then nothing was appended, and no metadata touched.
        """
        kept = tuple(filter(is_kept, items))
        if not kept:
            return None
        appended = self._store.append_items(self.thread_id, kept, at, expected)
        try:
            self.update_metadata(*self._observer.patches(appended))
        except StoreError as error:
            logger.warning("%s: what was appended is not told yet: %s", self.thread_id, error)
        return appended

    def update_metadata(self, *patches: Patch) -> None:
        """Change metadata of the thread; raises as `ThreadStore.update_thread_metadata`."""
        self._store.update_thread_metadata([(self.thread_id, patch) for patch in patches])
