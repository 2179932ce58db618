"""`watch`: keep checkpoints current, and tell of each change."""

from __future__ import annotations

import argparse
import contextlib
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING

from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json
from codex_checkpoints.cli.commands import DONE, Commands, refresh
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.service import following
from codex_checkpoints.service.following import Changed, Follower

if TYPE_CHECKING:
    from codex_checkpoints.watch.watcher import Watcher


def add(commands: Commands) -> None:
    """Add the command of this module."""
    about = "follow the sessions and keep their checkpoints current"
    watch = commands.add("watch", about, _watch)
    watch.add_argument("--once", action="store_true", help="bring all up to date and end")
    add_json(watch, "one JSON object a change")


def _watch(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.watch.watcher import Watcher

    follower = Follower(house.sessions)
    if options.once:
        refresh(house)
        _tell(follower.keep_all(), house, options)
        return DONE
    with _ending_on_signals():
        watcher = Watcher(follower.mark)
        try:
            for root in follower.trees():
                watcher.follow_tree(root)
            refresh(house)
            count = len(house.sessions.catalogue.current())
            output.say(f"following {count} sessions under {house.sessions.catalogue.place}")
            _tell(follower.begin(), house, options)
            _follow(follower, watcher, lambda change: _tell(change, house, options))
        finally:
            watcher.stop()
    return DONE


def _follow(follower: Follower, watcher: Watcher, tell: Callable[[Changed], None]) -> None:
    folders: frozenset[str] = frozenset()
    while True:
        if follower.folders() != folders:
            folders = follower.folders()
            watcher.follow_folders(set(folders))
            # A file may have changed before its folder was watched.
            changes = follower.reconcile()
        elif follower.marked.wait(following.RECONCILE_SECONDS):
            time.sleep(following.DEBOUNCE_SECONDS)
            changes = follower.drain()
        else:
            changes = follower.reconcile()
        for change in changes:
            tell(change)


def _tell(change: Changed, house: House, options: argparse.Namespace) -> None:
    current = house.sessions.catalogue.current()
    for session_id in change.session_ids:
        if options.json:
            output.write_json({"sessionId": session_id, "reason": change.reason}, indent=False)
        else:
            row, colour = current.get(session_id), output.colour()
            line = (
                texts.gone_line(session_id, change.reason, colour=colour)
                if row is None
                else texts.change_line(session_id, row.task, change.reason, colour=colour)
            )
            output.write_lines([line])


@contextlib.contextmanager
def _ending_on_signals() -> Generator[None]:
    """End cleanly when asked to: SIGTERM counts like Ctrl+C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
