"""Derive the state of a rollout in one call each, and check its numbers independently."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from codex_checkpoints.core.checkpoint.memory import Update, update_of
from codex_checkpoints.core.checkpoint.records import Checkpoint, Limits
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.service.reading.session_file import open_session
from codex_checkpoints.storage.rollout_file import FileReader

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Json = Mapping[str, object]

OFFERED = 1 << 16
"""How many bytes a reader of files offers at a time."""


class FoldWithReplay(Protocol):
    """A fold that has a replay beside it."""

    @property
    def replay(self) -> Replay: ...


F = TypeVar("F", bound=FoldWithReplay)
T = TypeVar("T")


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the bytes of session files that are taken in from now on."""
    counted: list[int] = []
    plain = Replay.feed

    def feed(self: Replay, data: bytes) -> int:
        counted.append(len(data))
        return plain(self, data)

    monkeypatch.setattr(Replay, "feed", feed)
    return counted


def read(data: bytes, *, pieces: Sequence[int] = ()) -> Replay:
    """Read a whole file, as it is offered from a disk or in pieces that end at these offsets."""
    return read_on(Replay(), data, pieces)


def read_on(replay: Replay, data: bytes, pieces: Sequence[int] = ()) -> Replay:
    """Go on with the bytes that follow those a replay has consumed."""
    return replay.with_tail(data[_offered(replay, data, pieces) :])


def following(make: Callable[[Replay], T], data: bytes) -> T:
    """Return a fold that follows the records of a whole file."""
    replay = Replay()
    fold = make(replay)
    replay.close(data[_offered(replay, data, ()) :])
    return fold


def read_with(fold: F, data: bytes, pieces: Sequence[int] = ()) -> F:
    """Read a whole file for a fold."""
    fold.replay.close(data[_offered(fold.replay, data, pieces) :])
    return fold


def _offered(replay: Replay, data: bytes, pieces: Sequence[int]) -> int:
    """Offer bytes as they come; return where the unfinished last line begins."""
    at = 0
    for end in (*sorted(pieces), len(data)):
        while at < end:
            consumed = replay.feed(data[at : min(end, at + OFFERED)])
            at += consumed
            if not consumed or replay.stopped:
                break
    # What a long line without end has taken is not read yet.
    begun = at - replay.pending
    if replay.pending:
        replay.drop_unfinished()
    return begun


def checkpoint(
    data: bytes,
    updates: Iterable[Json] = (),
    hashes: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> Checkpoint:
    """Return the checkpoint of a file with accepted updates."""
    return read(data).checkpoint(accepted(updates), hashes or {}, limits)


def accepted(lines: Iterable[Json]) -> list[Update]:
    """Return the updates in some lines of `updates.jsonl`."""
    found = (update_of(line) for line in lines)
    return [update for update in found if update is not None]


def story_checkpoint(story: Path) -> Checkpoint:
    """Read a story of `golden/`."""
    bases = {path.stem.removeprefix("base-"): str(path) for path in story.glob("base-*.jsonl")}
    session = open_session(FileReader(), str(story / "rollout.jsonl"), bases.get)
    assert session.problems == ()

    updates, hashes = story / "updates.jsonl", story / "hashes.json"
    lines = updates.read_bytes().split(b"\n") if updates.exists() else []
    return session.now().checkpoint(
        accepted(json.loads(line) for line in lines if line),
        json.loads(hashes.read_bytes()) if hashes.exists() else {},
    )


def story_digests(stories: Path) -> bytes:
    """Return the digests of all stories of a folder, each below the name of its story."""
    texts = list[str]()
    for story in sorted(path for path in stories.iterdir() if path.is_dir()):
        data, replay = (story / "rollout.jsonl").read_bytes(), Replay()
        extract = DigestExtract(replay, "session")
        replay.close(data[replay.feed(data) :])
        texts.append(f"{story.name}\n{digest_v1(extract.gathered(), DigestTerms(1000)).text}")
    return "\n".join(texts).encode()


def task(data: bytes) -> tuple[str, str] | None:
    """Return the text of the task and what it refers to."""
    found = checkpoint(data).task
    return None if found is None else (found.text, found.evidence.ref)


def plan(found: Checkpoint) -> list[tuple[str, str, bool]]:
    """Return the steps of the plan: id, text, done."""
    return [(step.id, step.text, found.plan.done[step.id]) for step in found.plan.steps]


def artifacts(data: bytes) -> dict[str, tuple[str, int]]:
    """Return the kind of each artifact, and where it was observed last."""
    found = checkpoint(data).artifacts.values()
    return {each.uri: (each.kind, each.last_observed_seq) for each in found}


def seq_of(data: bytes, *marks: str) -> int:
    """Number the last line that holds all these texts, with `json` and nothing of the product."""
    found, count = -1, 0
    for line in data.split(b"\n"):
        count += 1 if line.strip() else 0
        if line and all(mark.encode() in line for mark in marks):
            found = json.loads(line).get("ordinal", count)
    if found < 0:
        raise LookupError(marks)
    return found


def compressed(data: bytes) -> bytes:
    """Compress as Codex does: one frame."""
    return zstd.compress(data, 3)
