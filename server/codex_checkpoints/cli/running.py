"""The commands `watch`, `connect` and `doctor`, and the servers `serve`, `mcp` and `hook`.

A server is loaded only when it is started.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Generator
from importlib import import_module

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    DONE,
    JSON,
    Commands,
    Later,
    answer,
    bounded,
    flag,
    report,
    screen,
    value,
)

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from types import FrameType

    from codex_checkpoints.assembly import Places
    from codex_checkpoints.cli.opening import Terminal
    from codex_checkpoints.presentation import sessions as texts
    from codex_checkpoints.service.following import Changed, Follower
    from codex_checkpoints.storage.watch import Watcher
else:
    texts = Later("presentation.sessions")


def add_watch(commands: Commands) -> None:
    """Add `watch`."""
    once = flag("--once", "bring everything up to date, then stop")
    json = flag("--json", "one JSON object a change")
    about = "follow the sessions and keep their checkpoints current"
    commands.add("watch", about, _watch, once, json, before=None)


def add_connecting(commands: Commands) -> None:
    """Add `connect` and `doctor`."""
    flags = (
        flag("--dry-run", "show what would be written"),
        flag("--remove", "remove what was put in"),
        flag("--status", "only report how they are connected"),
        flag("--yes", "write without asking"),
        flag("--json", "print JSON, and never ask"),
    )
    about = "connect Codex with this program: hooks, and an MCP server"
    commands.add_alone("connect", about, _connect, *flags, check=_wrong)
    commands.add(
        "doctor",
        "report what was found, what was skipped and why; exit code 0 also with findings",
        _doctor,
        JSON,
    )


def add_doors(commands: Commands) -> None:
    """Add the servers for other programs."""
    port = bounded(1, "must be a port: 1 to 65535", (1 << 16) - 1)
    tcp = value(
        "--tcp", "PORT", "on a loopback port, to debug; prints the token to send first", type=port
    )
    about = "run the language server of an editor, on stdin and stdout"
    commands.add_alone("serve", about, _serve, tcp)
    commands.add_alone("mcp", "run the MCP server for Codex, on stdin and stdout", _mcp)
    commands.add_alone("hook", "answer one call of a Codex hook, on stdin and stdout", _hook)


def _wrong(options: argparse.Namespace) -> str | None:
    others = options.remove or options.dry_run
    return "--status only looks: leave out what would write" if options.status and others else None


def _connect(options: argparse.Namespace, where: Places) -> int:
    from attrs import evolve

    from codex_checkpoints.operations.connecting import ConnectParams, connect
    from codex_checkpoints.service.refusal import Refusal

    params = ConnectParams(options.dry_run, options.remove, options.status)
    shown = None
    if not (options.json or options.status):
        shown = connect(where, evolve(params, dry_run=True))
        try:
            output.write_lines(texts.change_lines(shown, screen(options)))
        except BrokenPipeError:
            output.discard()
            raise Refusal("cancelled", "nothing was written: it could not be shown") from None
        asks = not (options.yes or options.dry_run) and output.is_answered()
        if shown.changes and asks and not output.agreed("Write this?"):
            raise Refusal("cancelled", "nothing was written")
    done = shown if shown is not None and options.dry_run else connect(where, params)
    way_out = texts.next_step(done) if options.status else done.way_out
    return report(options, done, texts.connect_lines(done, way_out, screen(options)))


def _doctor(options: argparse.Namespace, services: Terminal) -> int:
    return answer(options, services, "connecting.doctor", texts.doctor_lines)


def _watch(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.service.following import Follower
    from codex_checkpoints.storage.watch import Watcher

    output.log_to_stderr()
    follower = Follower(services.sessions)
    if options.once:
        services.look_around()
        _report(follower.keep_all(), services, options)
        return DONE
    with _ending_on_signals():
        watcher = Watcher(follower.mark)
        try:
            for root in follower.trees():
                watcher.follow_tree(root)
            services.look_around()
            count = len(services.sessions.catalogue.current())
            output.say(f"following {count} sessions under {services.where.codex_home}")
            _report(follower.begin(), services, options)
            _follow(follower, watcher, lambda change: _report(change, services, options))
        finally:
            watcher.stop()
    return DONE


def _follow(follower: Follower, watcher: Watcher, show: Callable[[Changed], None]) -> None:
    from codex_checkpoints.service import following

    folders: frozenset[str] = frozenset()
    while True:
        if follower.folders() != folders:
            folders = follower.folders()
            watcher.follow_folders(set(folders))
            # A file may have changed before its folder was watched.
            changes = follower.reconcile()
        elif follower.marked.wait(follower.patience):
            time.sleep(following.DEBOUNCE_SECONDS)
            changes = follower.drain()
        else:
            changes = follower.unmarked()
        for change in changes:
            show(change)


def _report(change: Changed, services: Terminal, options: argparse.Namespace) -> None:
    current = services.sessions.catalogue.current()
    for session_id in change.session_ids:
        if options.json:
            output.write_json({"sessionId": session_id, "reason": change.reason}, indent=False)
        else:
            row = current.get(session_id)
            words = "gone" if row is None else services.sessions.title(row) or "(no message yet)"
            line = texts.change_line(session_id, words, change.reason, screen(options))
            output.write_lines([line])


@contextlib.contextmanager
def _ending_on_signals() -> Generator[None]:
    """End cleanly when asked to: SIGTERM counts like Ctrl+C."""
    import signal

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _load_asyncio() -> None:
    """Load asyncio as where there is no OpenSSL, which takes megabytes: nothing here connects."""
    is_loaded = "ssl" in sys.modules
    if not is_loaded:
        sys.modules["ssl"] = None  # pyright: ignore[reportArgumentType] - to import it fails
    try:
        import_module("asyncio")
    finally:
        if not is_loaded:
            del sys.modules["ssl"]


def _serve(options: argparse.Namespace, where: Places) -> int:
    _load_asyncio()
    from codex_checkpoints import server

    server.serve(where, tcp=options.tcp)
    return DONE


def _mcp(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import mcp

    return mcp.serve(options.codex_home, options.state_dir)


def _hook(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import hook

    return hook.serve(options.codex_home, options.state_dir)
