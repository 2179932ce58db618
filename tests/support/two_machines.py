"""Two machines of one person, and the folder that both share."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from codex_checkpoints.service.remote.outgoing import Outgoing, outgoing
from codex_checkpoints.service.remote.push import Pushed, Pusher
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import SEGMENT, HistoryStore, Segment
from codex_checkpoints.storage.remote.packing import SegmentStream, zstd
from codex_checkpoints.storage.remote.spool import Spool
from homes import Home, thread
from rollouts import Step, assistant, rollout, session, turn, user

Json = dict[str, Any]


def segments(data: bytes, start: int = 0, most: int = SEGMENT) -> Iterator[Segment]:
    """Yield the segments of a history from a point on."""
    stream = SegmentStream([data], most)
    assert stream.seek(start)
    while (segment := stream.peek()) is not None:
        yield segment
        stream.seek(segment.end)


@contextmanager
def read(sessions: Sessions, number: int = 1) -> Generator[Outgoing]:
    """Read a session as it would leave."""
    with closing(Spool(sessions.records.state_dir)) as spool:
        yield outgoing(sessions, thread(number), [], spool, allow_redacted=True, indexed=True)


class Machines:
    """Two Codex homes that have the same folder as remote, each a machine of its own.

    `places` are those of another remote, as the first and the second one name it.
    """

    def __init__(self, root: Path, places: tuple[str, str] | None = None) -> None:
        self.folder = root / "remote"
        self.there, self.here = Home(root / "there"), Home(root / "here")
        own = places or (str(self.folder),) * 2
        for home, place in zip((self.there, self.here), own, strict=True):
            (home.user / "shop").mkdir()
            home.json("remote", "set", place, "--yes")
            self.name_machine(home, home.root.parent.name)

    @property
    def shop(self) -> str:
        """Return the folder of the sessions that are pushed."""
        return str(self.there.user / "shop")

    def name_machine(self, home: Home, name: str) -> None:
        """Give a machine another name than that of the computer the tests run on."""
        path = home.state / "remote.json"
        path.write_text(
            json.dumps(json.loads(path.read_text()) | {"machine": name, "machineId": name})
        )

    def write(self, *steps: Step, number: int = 1, **head: Any) -> Path:  # noqa: ANN401 - a head
        """Write a session of the first machine."""
        begun = session(thread=thread(number), cwd=self.shop, **head)
        return self.there.put(rollout(begun, *steps), number)

    def chat(self, *texts: str, number: int = 1) -> Path:
        """Write a session in which the model answers to each text."""
        turns = (turn(user(each), assistant(f"so {each}"), name=f"n{each}") for each in texts)
        return self.write(*turns, number=number)

    def push(self, number: int = 1, *more: str) -> Json:
        """Push a session; return its entry."""
        pushed: Json = self.there.json("push", thread(number), "--yes", *more)
        assert pushed["refused"] == []
        (found,) = pushed["sessions"]
        return found

    def pull(self, number: int = 1, *more: str) -> Json:
        """Pull a session on the other machine."""
        into = ("--into", str(self.here.user / "shop"))
        pulled: Json = self.here.json("pull", thread(number), *into, *more)
        return pulled

    def listed(self) -> list[Json]:
        """Return the sessions in the remote, as the other machine lists them."""
        found: list[Json] = self.here.json("sessions", "--remote")
        return found

    def branch(self, session_id: str) -> list[Json]:
        """Return the records of a session of the other machine."""
        (path,) = self.here.root.glob(f"sessions/**/*{session_id}.jsonl")
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def stored(self) -> bytes:
        """Return everything in the remote, its names too and segments unpacked."""
        parts: list[bytes] = []
        for path in sorted(self.folder.rglob("*")):
            parts.append(str(path.relative_to(self.folder)).encode())
            if path.suffix == ".zst":
                parts.append(zstd.decompress(path.read_bytes()))
            elif path.is_file():
                parts.append(path.read_bytes())
        return b"\n".join(parts)


def pushed(
    home: Home,
    store: HistoryStore,
    *,
    segment: int = 700,
    machine: str = "there",
    owner: str = "ana",
    team: str | None = None,
    number: int = 1,
) -> Pushed:
    """Push a session of a home in this process."""
    with home.house() as house, read(house.sessions, number) as going:
        chosen = ChosenRemote(store.place, owner, machine, machine)
        return Pusher(house.sessions, store, chosen, segment=segment, team=team).push(going)


def history(store: HistoryStore) -> bytes:
    """Return the history that the row of the first session names."""
    found = store.row(thread(1))
    assert found is not None
    return b"".join(store.read(thread(1), found.row.head))
