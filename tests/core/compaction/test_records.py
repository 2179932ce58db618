"""The record of a compaction, its lines on disk, and its newest session (CKP-2, CKP-33)."""

import attrs
import orjson
import pytest

from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.history.tokens import Figure
from codex_checkpoints.core.agents.codex.history.windows import Chain
from codex_checkpoints.core.checkpoint.records import Caps, Checkpoint
from codex_checkpoints.core.compaction.contents import counts_of, remaining
from codex_checkpoints.core.compaction.records import (
    CompactionWindows,
    Counts,
    Installed,
    Range,
    Record,
    Remaining,
    Sizes,
    Undone,
    began_session,
    current_compaction,
    digest_of,
    recalled,
    record_of,
    remembered,
    to_value,
)
from codex_checkpoints.core.compaction.replacement import Replacement, Terms, build
from history_items import CHECKPOINT, LONG_ANSWER, image, output, pasts, user, with_parts

AT = "2026-11-20T10:00:00.000Z"
BEFORE, AFTER = Chain("a", None, "a", 0), Chain("b", "b", "c", 1)


def installed(
    name: str = "k1", source: str = "S", target: str = "T", seed: Checkpoint | None = None
) -> Installed:
    return Installed(
        compaction_id=name,
        at=AT,
        requested_by="user",
        why="requested by the user",
        placement="manual",
        strategy="checkpoint",
        determinism="deterministic",
        into="in-place" if source == target else "new",
        session_id=target,
        source=Range(source, 0, 9, "sha256:1", 4096, "sha256:2"),
        replacement="sha256:3",
        items=(Remaining("user", "user", AT, "seq:3", 5, 2),),
        counts=Counts(1, 0, 7, {"assistant": 7}, "seq:1", "seq:9", 1),
        sizes=Sizes(Figure(900, "reported"), Figure(90, "estimated"), 100),
        windows=CompactionWindows(BEFORE, AFTER),
        seed=seed,
    )


def undone(name: str) -> Undone:
    return Undone(name, AT, "user", "requested by the user")


def test_record_says_who_compacted_the_replaced_part_and_the_rest() -> None:
    assert to_value(installed()) == {
        "type": "installed",
        "compactionId": "k1",
        "at": AT,
        "requestedBy": "user",
        "why": "requested by the user",
        "placement": "manual",
        "strategy": "checkpoint",
        "determinism": "deterministic",
        "into": "new",
        "sessionId": "T",
        "source": {
            "sessionId": "S",
            "fromSeq": 0,
            "toSeq": 9,
            "history": "sha256:1",
            "bytesBefore": 4096,
            "prefix": "sha256:2",
        },
        "replacement": "sha256:3",
        "items": [
            {
                "author": "user",
                "kind": "user",
                "at": AT,
                "ref": "seq:3",
                "tokens": 5,
                "cutTokens": 2,
            }
        ],
        "counts": {
            "kept": 1,
            "truncated": 0,
            "dropped": 7,
            "droppedKinds": {"assistant": 7},
            "firstDropped": "seq:1",
            "lastDropped": "seq:9",
            "payloads": 1,
        },
        "sizes": {
            "before": {"tokens": 900, "source": "reported"},
            "after": {"tokens": 90, "source": "estimated"},
            "bound": 100,
        },
        "windows": {
            "before": {"number": 0, "first": "a", "previous": None, "current": "a"},
            "after": {"number": 1, "first": "b", "previous": "b", "current": "c"},
        },
        "baseline": None,
        "seed": None,
    }


@pytest.mark.parametrize(
    "record",
    [
        installed(),
        installed(seed=CHECKPOINT),
        installed(target="S"),
        undone("k1"),
        Undone("k1", AT, "internal", "x", AFTER),
    ],
    ids=range(5),
)
def test_record_round_trips(record: Record) -> None:
    line = orjson.loads(orjson.dumps(to_value(record)))

    assert record_of(line | {"from the future": 1}) == record


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"type": "forgotten"},
        {"type": "installed"},
        {**to_value(installed()), "strategy": "magic"},
        {**to_value(installed()), "at": 5},
        {**to_value(installed()), "items": 5},
        {**to_value(installed()), "windows": {"before": None}},
        {**to_value(installed()), "seed": {"schemaVersion": 2}},
        {"type": "undone", "compactionId": None, "at": AT},
    ],
    ids=range(11),
)
def test_invalid_line_is_not_a_record(value: object) -> None:
    assert record_of(value) is None


def test_newest_compaction_says_where_the_session_continues() -> None:
    first, second, third = (installed(f"k{n}", target=target) for n, target in enumerate("TUV"))

    assert current_compaction([], "S") is None
    assert current_compaction([first, second], "S") == second
    assert current_compaction([first, second, undone("k1")], "S") == first
    assert current_compaction([first, second, undone("k0")], "S") == second
    assert current_compaction([first, second, undone("k1"), undone("k0")], "S") is None
    assert current_compaction([first, second, undone("k1"), third], "S") == third


def test_session_made_by_a_compaction_continues_in_itself() -> None:
    made, in_place = installed(seed=CHECKPOINT), installed(target="S")

    assert current_compaction([made], "T") is None
    assert [began_session([made], name) for name in "TS"] == [made, None]
    assert began_session([in_place], "S") is began_session([undone("k1")], "T") is None


def test_record_keeps_author_and_time_of_each_item_and_counts_the_rest() -> None:
    items = [with_parts(image()), user("x" * 400), with_parts("see", image()), LONG_ANSWER]
    found = build(pasts(items), CHECKPOINT, Caps(), Terms(placement="manual", budget=60))
    assert isinstance(found, Replacement)

    assert [(each.author, each.at, each.ref, each.cut_tokens > 0) for each in remaining(found)] == [
        ("user", "2026-11-20T10:00:01.000Z", "seq:1", True),
        ("user", "2026-11-20T10:00:02.000Z", "seq:2", False),
        ("codex-checkpoints", None, None, False),
    ]
    assert counts_of(found.report) == Counts(
        kept=1,
        truncated=1,
        dropped=2,
        dropped_kinds={"assistant": 1, "user": 1},
        first_dropped="seq:0",
        last_dropped="seq:3",
        payloads=1,
    )


def test_items_of_an_earlier_replacement_keep_the_time_of_their_first_line() -> None:
    words, made = user("fix it"), user("[SESSION_CHECKPOINT v1]")
    own = (
        Remaining("user", "user", "then", "seq:3", 2),
        Remaining("codex-checkpoints", "handoff", None, None, 2),
    )
    same = dict(sorted(words.items()))  # the order of keys changes no digest
    record = attrs.evolve(installed(), replacement=digest_of([same, made]), items=own)
    history = [Past(item, "now", "seq:9") for item in (words, made, LONG_ANSWER)]

    # What a compaction made itself was written in its line.
    assert remembered(history, record) == (Past(words, "then", "seq:3"), *history[1:])
    assert remembered(history[1:], record) == tuple(history[1:])


def test_items_restored_by_undo_have_their_earlier_places() -> None:
    words, put_in = user("fix it"), output("c1", "aborted")
    history = [Past(item, "now", "seq:9") for item in (words, put_in, LONG_ANSWER)]
    known = [Past(words, "then", "seq:3"), Past(put_in)]

    assert recalled(history, known) == (known[0], *history[1:])
    assert recalled(history, [Past(LONG_ANSWER, "then", "seq:3")]) == tuple(history)
    assert recalled(history[:1], known) == (history[0],)
