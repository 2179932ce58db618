"""The stores that keep the contract, each with what a test must be able to do around it."""

import contextlib
import itertools
import os
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from codex_checkpoints.storage import file_lock
from codex_checkpoints.storage.contract import Copied, HistoryItem, NewThread, Rollout, Row
from codex_checkpoints.storage.local import LocalThreadStore
from codex_checkpoints.storage.memory import InMemoryThreadStore
from codex_checkpoints.storage.store import ThreadStore
from homes import thread

AT = datetime(2026, 11, 21, 12, 0, 0, 123000, tzinfo=UTC)


class Shop:
    """A store, and the world around it: other processes, the next start."""

    def __init__(
        self,
        store: ThreadStore,
        put: Callable[[str, bytes, str | None], Rollout],
        live: Callable[[str], contextlib.AbstractContextManager[None]],
        reopen: Callable[[], ThreadStore],
        another: Callable[[], ThreadStore],
    ) -> None:
        self.store = store
        self.another = another
        """Return the store as another process has it at the same time."""
        self._put = put
        self.live = live
        """Have another process load a thread while a block runs."""
        self._reopen = reopen

    def put(self, thread_id: str, data: bytes, rollout_id: str | None = None) -> Rollout:
        """Place a whole rollout as another process would."""
        return self._put(thread_id, data, rollout_id)

    def reopened(self) -> ThreadStore:
        """Return the store as the next process finds it."""
        self.store = self._reopen()
        return self.store


@contextlib.contextmanager
def local(folder: Path, state: Path | None = None) -> Generator[Shop]:
    """A store of files below a folder, with the files of ours in it or elsewhere."""
    home = folder / "codex"
    state = state or home / "codex-checkpoints"
    home.mkdir(parents=True)
    seconds = itertools.count()

    def clock() -> str:
        return (AT + timedelta(seconds=next(seconds))).isoformat()

    stores = [LocalThreadStore(str(home), str(state), clock)]

    def put(thread_id: str, data: bytes, rollout_id: str | None) -> Rollout:
        later = "" if rollout_id in {None, thread_id} else f"_{rollout_id}"
        name = f"rollout-2026-11-20T10-00-00-{thread_id}{later}.jsonl"
        known = stores[-1].places().get(rollout_id or thread_id)
        path = Path(known) if known else home / "sessions/2026/11/20" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        found = stores[-1].stat([str(path)])[str(path)]
        assert found is not None
        return found

    @contextlib.contextmanager
    def live(thread_id: str) -> Generator[None]:
        lock = home / "thread-writer-locks" / f"{thread_id}.lock"
        lock.parent.mkdir(exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
        try:
            assert file_lock.take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def reopen() -> LocalThreadStore:
        stores[-1].close()
        stores.append(LocalThreadStore(str(home), str(state), clock))
        return stores[-1]

    def another() -> LocalThreadStore:
        others.append(LocalThreadStore(str(home), str(state), clock))
        return others[-1]

    others: list[LocalThreadStore] = []
    try:
        yield Shop(stores[0], put, live, reopen, another)
    finally:
        for store in (stores[-1], *others):
            store.close()


@contextlib.contextmanager
def memory(_folder: Path) -> Generator[Shop]:
    """A store in this process, which is still there at the next start of a test."""
    store = InMemoryThreadStore()
    try:
        yield Shop(store, store.put, _loading(store.live), lambda: store, lambda: store)
    finally:
        store.close()


def _loading(threads: set[str]) -> Callable[[str], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def live(thread_id: str) -> Generator[None]:
        threads.add(thread_id)
        try:
            yield
        finally:
            threads.discard(thread_id)

    return live


STORES = {"local": local, "memory": memory}


def meta(number: int, mode: str = "paginated", **more: object) -> dict[str, object]:
    """Return the payload of a `session_meta` as we write it."""
    known: dict[str, object] = {
        "id": thread(number),
        "session_id": thread(number),
        "timestamp": "2026-11-21T12:00:00.123Z",
        "cwd": "/home/dev/demo",
        "originator": "codex-checkpoints",
        "cli_version": "0.169.0",
        "source": "cli",
        "model_provider": "openai",
        "history_mode": mode,
    }
    return known | more


def said(text: str) -> HistoryItem:
    """Return an item in which a person says something, as legacy histories have it."""
    return HistoryItem("event_msg", {"type": "user_message", "message": text})


def new(
    number: int, mode: str = "paginated", *items: HistoryItem | Copied, **more: object
) -> NewThread:
    """Return a thread to be made."""
    return NewThread(meta(number, mode, **more), items)


def told(rollout: Rollout, **values: object) -> Row:
    """Return what a reader might tell of a rollout."""
    known: dict[str, object] = {
        "session_id": rollout.thread_id,
        "updated_at": "2026-11-21",
        **values,
    }
    return Row(rollout, **known)  # pyright: ignore[reportArgumentType] - as the test wants it
