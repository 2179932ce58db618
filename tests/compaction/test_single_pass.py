"""A compaction and a first digest read their session once: one pass, for all who need it.

What is counted are the bytes that are read of the session file itself, whoever reads them.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import generated_rollouts
from codex_checkpoints.core.agents.codex.history.scan import FirstPass, HistoryScan
from codex_checkpoints.core.agents.codex.own_messages import RESTORE_LINE
from codex_checkpoints.core.agents.codex.reader import LinePlace, Reader
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction.records import Installed, Into
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.doors import cli
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.compaction.source import Sources
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.history.resumed_history import ChainPart, read_parts
from codex_checkpoints.service.reading.session_file import open_session
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.rollout_file import FileReader
from compaction.test_compact import OUTSIDE, WORK, asked, compacting, history_of, records
from derived_state import compressed
from homes import Home, go_on, thread
from rollouts import assistant, based_on, compacted, rollout, session, shell, tokens, turn, user

END = 3 << 20
"""So much of its ends may be looked at besides where something is appended: before, and then."""

KEPT = {"role": "user", "content": [{"type": "input_text", "text": "Fix the login."}]}


@pytest.fixture(scope="module")
def large() -> bytes:
    """Return a session of some megabytes, most of them in windows that were compacted."""
    early = [
        turn(user(f"Look at part {number}."), shell("make test", f"{number} " * 5_000))
        for number in range(150)
    ]
    window = compacted("", [{"type": "message", **KEPT}])
    late = turn(user("And the logout."), assistant(WORK), tokens(9_000))
    data = rollout(session(thread=thread(1)), *early, window, late)
    assert len(data) > 3 << 20
    return data


class Counted:
    """How many bytes of one file were read."""

    def __init__(self) -> None:
        self.bytes = 0


@contextlib.contextmanager
def counted(path: Path) -> Generator[Counted]:
    """Count what a block reads of a file."""
    count, read = Counted(), os.read
    identity = os.stat(path).st_ino

    def counting(file: int, size: int) -> bytes:
        data = read(file, size)
        count.bytes += len(data) if os.fstat(file).st_ino == identity else 0
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", counting)
        yield count


def is_once(count: Counted, path: Path, besides: int = 0) -> bool:
    """Return whether a file was read once, but for its last window and a look at its ends."""
    size = path.stat().st_size
    return 0.99 * size < count.bytes < 1.1 * size + besides


def unseen(sessions: Sessions) -> Compacting:
    """Compact what no index has seen yet."""
    return Compacting(sessions, OUTSIDE, sessions.refresh)


def go_on_with(path: Path) -> None:
    go_on(path, thread(1), turn(user("Now the docs."), assistant(WORK)))


# --- how often -----------------------------------------------------------------------------------


@pytest.mark.parametrize("into", ["new", "in-place", "preview"])
def test_cold_compaction_or_preview_reads_the_file_once(home: Home, large: bytes, into: str):
    path = home.put(large)

    with counted(path) as count, home.house(fresh=False) as house:
        compacting = unseen(house.sessions)
        if into == "preview":
            compacting.preview(asked())
        else:
            compacting.compact(asked(cast("Into", into)))

    assert is_once(count, path, END)


@pytest.mark.parametrize("cut", [0, 1])
def test_first_digest_reads_the_file_once_and_equals_a_later_one(
    home: Home, large: bytes, cut: int
):
    path = home.put(large[: len(large) - cut])  # also without the end of the last line

    with home.house() as house, counted(path) as count:
        cold = Digests(house.sessions).digest(thread(1))
    assert is_once(count, path)

    shutil.rmtree(home.state)
    with home.house() as house:
        house.sessions.open(thread(1))
        with counted(path) as count:
            known = Digests(house.sessions).digest(thread(1))
    assert is_once(count, path)
    assert known == cold


@pytest.mark.parametrize("meant", [thread(1)[:20], thread(1).upper(), "path"])
def test_file_is_read_once_for_any_name_of_the_session(home: Home, large: bytes, meant: str):
    path = home.put(large)
    named = str(path) if meant == "path" else meant

    with counted(path) as count, home.house(fresh=False) as house:
        unseen(house.sessions).compact(CompactionRequest(named))

    assert is_once(count, path)


def test_second_preview_of_an_unchanged_session_reads_nothing(home: Home, large: bytes):
    path = home.put(large)
    with home.house() as house:
        first = compacting(house.sessions).preview(asked())
        with counted(path) as count:
            again = compacting(house.sessions).preview(attrs.evolve(asked(), digest_tokens=300))

        assert count.bytes == 0
        assert again.digest_tokens <= 300 < first.digest_tokens

        go_on_with(path)
        house.sessions.refresh()
        later = compacting(house.sessions).preview(asked())
    assert "Now the docs." in str(later.replacement)


def test_command_line_reads_the_file_once(home: Home, large: bytes):
    path = home.put(large)
    folders = ["--codex-home", str(home.root), "--state-dir", str(home.state)]

    with counted(path) as count:
        code = cli.main(["compact", thread(1), *folders, "--json"])

    assert code == 0
    assert is_once(count, path)


@pytest.mark.parametrize("used", [False, True])
def test_indexed_session_is_compacted_with_one_read(home: Home, large: bytes, *, used: bool):
    path = home.put(large)
    with home.house() as house:
        if used:  # then it is kept where its reader stands
            house.sessions.show(thread(1))

    with counted(path) as count, home.house() as house:
        compacting(house.sessions).compact(asked())

    assert is_once(count, path)


def test_only_new_bytes_are_read_in_addition(home: Home, large: bytes):
    path = home.put(large)
    with home.house() as house:
        house.sessions.show(thread(1))
        go_on_with(path)
        with counted(path) as count:
            compacting(house.sessions).compact(asked())

    assert is_once(count, path)


def test_undo_in_place_reads_the_file_once(home: Home, large: bytes):
    path = home.put(large)
    with home.house() as house:
        done = compacting(house.sessions).compact(asked("in-place"))
        with counted(path) as count:
            Undoing(house.sessions, OUTSIDE).uncompact(str(done.compaction_id))

    assert is_once(count, path, END)


# --- the same answer -----------------------------------------------------------------------------


def installed(home: Home, compact: Callable[[Sessions], Compacting]) -> Installed:
    """Compact a session that no index has seen, and return what is recorded."""
    with home.house(fresh=False) as house:
        compact(house.sessions).compact(asked(force=True))
    record = records(home, thread(1))[-1]
    assert isinstance(record, Installed)
    return record


def without_ids(record: Installed) -> Installed:
    windows = attrs.evolve(record.windows, after=record.windows.before)
    return attrs.evolve(record, compaction_id="", at="", session_id="", windows=windows)


def seen(sessions: Sessions) -> Compacting:
    """Compact what the index has seen before."""
    sessions.refresh()
    return compacting(sessions)


@pytest.mark.parametrize("form", [".jsonl", ".jsonl.zst"])
def test_earlier_index_contents_change_no_record(home: Home, large: bytes, form: str):
    home.put(compressed(large) if form.endswith("zst") else large, form=form)

    cold, warm = installed(home, unseen), installed(home, seen)

    assert without_ids(cold) == without_ids(warm)
    assert cold.source.prefix == f"sha256:{hashlib.sha256(large).hexdigest()}"


def test_session_with_a_base_is_read_together_with_it(home: Home):
    base = rollout(session(thread=thread(2)), turn(user("Fix the login."), assistant(WORK)))
    home.put(base, 2)
    start = base.count(b"\n")
    below = based_on(thread(2), start, len(base))
    head = session(thread=thread(1), history_base=below, start=start)
    home.put(rollout(head, turn(user("And the logout."), assistant(WORK))))

    cold, warm = installed(home, unseen), installed(home, seen)

    assert without_ids(cold) == without_ids(warm)
    assert cold.source.from_seq < start


@pytest.mark.parametrize("another", [False, True])
def test_bytes_added_or_replaced_after_the_read_count(home: Home, large: bytes, another: bool):
    path = home.put(large)
    other = turn(user("Now the docs."), assistant(WORK), tokens(9_000))
    with home.house(fresh=False) as house:
        sessions = house.sessions

        def looked_around_too_early() -> None:
            sessions.refresh()
            if another:
                beside = path.with_suffix(".new")
                beside.write_bytes(rollout(session(thread=thread(1)), other))
                beside.replace(path)
            else:
                go_on_with(path)

        done = Compacting(sessions, OUTSIDE, looked_around_too_early).compact(asked())

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert records(home, thread(1))[-1].source.prefix == f"sha256:{digest}"
    assert "Now the docs." in str(done.replacement)
    assert ("Fix the login." in str(done.replacement)) is not another


def test_earlier_history_is_restored_from_one_pass(home: Home, large: bytes):
    path = home.put(large.removesuffix(b"\n"))  # what is installed begins by ending this line
    with home.house() as house:
        old = history_of(house.sessions, thread(1))
        done = compacting(house.sessions).compact(asked("in-place"))
        go_on_with(path)
        house.sessions.refresh()

        Undoing(house.sessions, OUTSIDE).uncompact(str(done.compaction_id))

        now = history_of(house.sessions, thread(1))
    assert now[: len(old)] == old
    assert len(now) == len(old) + 2


# --- for every session ---------------------------------------------------------------------------

SESSIONS = st.one_of(generated_rollouts.sessions(), generated_rollouts.damaged())
BLOB = "QUJD" * (3 << 19)
"""Base64 of 6 MB, which a fold that wants only words is not given."""


def nowhere(_rollout_id: str) -> None:
    return None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one_reading") / "rollout.jsonl"


def opened_with(path: Path, *folds: Callable[[Replay], object]) -> Replay:
    """Read a session with a replay and these folds, also a last line without its end."""
    replay = Replay()
    for fold in folds:
        fold(replay)
    return open_session(FileReader(), str(path), nowhere, replay=replay).now()


def quotes(replay: Replay) -> DigestSource:
    return next(fold.gathered() for fold in replay.followers if isinstance(fold, DigestExtract))


def outline(reader: Reader) -> FirstPass:
    return next(fold.outline() for fold in reader.folds if isinstance(fold, HistoryScan))


def gathering(replay: Replay) -> DigestExtract:
    return DigestExtract(replay, thread(1))


@given(data=SESSIONS)
def test_folds_that_share_a_pass_get_the_results_of_separate_passes(place: Path, data: bytes):
    place.write_bytes(data)

    together = opened_with(place, HistoryScan, gathering)

    assert together.exact
    assert outline(together) == outline(opened_with(place, HistoryScan))
    assert quotes(together) == quotes(opened_with(place, gathering))
    together.read_alone()
    assert together.save() == opened_with(place).save()


@given(data=SESSIONS)
def test_history_scan_beside_a_replay_gives_the_same_result(place: Path, data: bytes):
    place.write_bytes(data)
    reader, path = FileReader(), str(place)
    alone = HistoryScan(Reader())

    read_parts(reader, alone.reader, (ChainPart(path),), LinePlace(0, 0), path)

    assert outline(opened_with(place, HistoryScan)) == alone.outline()


@given(data=SESSIONS, lines=st.integers(0, 60))
def test_lines_before_a_cut_equal_a_shorter_file(place: Path, data: bytes, lines: int):
    ends = [0, *(at + 1 for at, byte in enumerate(data) if byte == 0x0A)]
    cut = ends[min(lines, len(ends) - 1)]
    place.write_bytes(data)
    survey, shorter = (HistoryScan(Reader(), cut=at) for at in (LinePlace(0, cut), None))
    reader, path = FileReader(), str(place)

    read_parts(reader, survey.reader, (ChainPart(path),), LinePlace(0, 0), path)
    read_parts(reader, shorter.reader, (ChainPart(path, end=cut),), LinePlace(0, 0), path)

    in_front, wanted = survey.in_front, shorter.outline()
    if wanted.opened_at is None:  # nothing tells where the first line would have been
        wanted = attrs.evolve(wanted, opened_seq=in_front.opened_seq)
    assert attrs.evolve(in_front, seq=wanted.seq) == wanted


def long_output(last: bytes) -> bytes:
    """Return a session that ends with an output of a call with these bytes in it."""
    whole = rollout(session(thread=thread(1)), turn(shell("make", "LAST"), assistant(WORK)))
    head, *lines = whole.splitlines(keepends=True)
    return head + b"".join(each.replace(b"LAST", last) for each in lines)


@pytest.mark.parametrize("last", [b"many words " * 900_000, b"x" * 200_000 + b"\xff"])
def test_unreadable_long_line_counts_as_if_no_fold_needed_it(home: Home, last: bytes):
    path = home.put(long_output(last))
    with home.house() as house:
        read = Sources(house.sessions).read(thread(1), quoted=True)

    assert not opened_with(path, HistoryScan, gathering).exact
    assert read.replay.save() == opened_with(path).save()


def test_long_restore_record_counts_the_same_with_any_other_fold(home: Home):
    message = f"{RESTORE_LINE}\n" + "and so on " * 20_000
    path = home.put(rollout(session(thread=thread(1)), compacted(message, []), turn(user("Go."))))

    together = opened_with(path, HistoryScan, gathering)
    together.read_alone()

    assert together.save() == opened_with(path).save()


def test_line_with_large_blobs_gives_each_fold_its_usual_data(home: Home):
    shown = user(f"Look at {BLOB} and fix the login.")
    path = home.put(rollout(session(thread=thread(1)), turn(shown, assistant(WORK))))

    assert not opened_with(path, HistoryScan, gathering).exact
    with home.house() as house:
        read = Sources(house.sessions).read(thread(1), quoted=True)

    alone = opened_with(path, gathering)
    assert read.gathered is not None
    assert read.gathered.requests == quotes(alone).requests
    assert read.replay.save() == opened_with(path).save()
    assert BLOB in str(read.traced.history.items)
