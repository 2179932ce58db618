"""`restores.jsonl` and the words about it: all that details need, and nothing that was said."""

import re
from typing import Any, get_args

import orjson
import pytest
from attrs import evolve

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.restore.events import TRANSFERRED
from codex_checkpoints.core.restore.pack import (
    Message,
    PackContents,
    Pinned,
    pack_lines,
    state_pack,
)
from codex_checkpoints.core.restore.pack_items import Ancestor, Item, Parent
from codex_checkpoints.core.restore.recording import figures_of, restore_of, transferred
from codex_checkpoints.core.restore.records import (
    SEMANTICS,
    Caution,
    Restore,
    WarningCode,
    carried_in,
    caution_text,
    headline_of,
    line_of,
    restore_in,
    restores_in,
)
from codex_checkpoints.core.restore.references import (
    Drift,
    Fallback,
    FileChunk,
    FileReference,
    Missing,
    ModeChange,
    References,
    SystemArtifact,
)
from restore_values import EMPTY, MADE, ORIGIN, RESTORED, SOURCE, carried, recorded
from updates import V1, V2

FULL = carried(
    evolve(
        EMPTY,
        seq=7,
        task=Task("add a cart", Evidence("user", "u1")),
        artifacts={"a.py": Artifact("a.py", "file", V2, 3)},
        facts={"k": Fact("v", Evidence("file", "a.py"), (Dependency("a.py", V1),), 3)},
    ),
    origin=evolve(ORIGIN, chain=(Ancestor(SOURCE, Parent("s-first", "t9"), "m0"),)),
    reason="too slow",
    modes=(ModeChange(3, "plan", "t1"),),
    references=References(
        (FileReference("a.py", V2, 12, touched=True, sent_to_model=True),),
        (FileChunk("a.py#L1-L2", "a.py", 1, 2, V1),),
        (SystemArtifact("patch", "p1"),),
    ),
    pins=(Pinned("rules.md", None, None, V1, "planted in a file"),),
    window=(Message("u9", "planted in a message"),),
)


def restore(goods: PackContents = FULL, budget: int = 8000) -> Restore:
    return recorded(goods, state_pack(goods, budget))


def soft(goods: PackContents = FULL) -> Restore:
    return recorded(goods, None)


def test_hard_restore_record_has_all_its_details():
    line = line_of(restore())

    assert list(line) == [
        *("semantics", "operationId", "sessionId", "sourceSessionId", "checkpointId"),
        *("sourceTurn", "label", "markedAt", "mode", "restoredAt", "contextReset", "chain"),
        *("reason", "modes", "references", "pinned", "included", "deferred", "warnings"),
        *("tokens", "caps", "windows", "branchDigest", "sourceDigest", "pack", "seed"),
        *("drift", "missing", "fallbacks", "notCompared", "placement"),
        *("branchBytes", "sourceBytes"),
    ]
    assert line["placement"] == "seed"
    assert line["semantics"] == SEMANTICS == 1
    assert line["sourceTurn"] == {"sessionId": SOURCE, "turnId": "t1"}
    assert (line["restoredAt"], line["markedAt"]) == (RESTORED, MADE)
    assert line["contextReset"] is True
    assert line["references"]["files"] == [
        {"uri": "a.py", "hash": V2, "size": 12, "touched": True, "sentToModel": True}
    ]
    assert line["references"]["chunks"] == [
        {"chunkId": "a.py#L1-L2", "uri": "a.py", "start": 1, "end": 2, "hash": V1}
    ]
    assert line["pinned"] == [{"uri": "rules.md", "start": None, "end": None, "hash": V1}]
    assert line["included"][0] == {"part": "notice", "id": "notice:1"}
    assert line["seed"]["seq"] == 7


def test_soft_restore_has_neither_pack_nor_initial_state_and_resets_nothing():
    record = soft()

    assert (record.pack, record.seed, record.context_reset) == (None, None, False)
    assert (record.placement, record.deferred) == ("copy", ())
    assert "task" in {item.id for item in record.included}
    assert record.references == FULL.references
    assert restore().pack == figures_of(state_pack(FULL))
    assert figures_of(state_pack(FULL)).digest == digest_of(state_pack(FULL).text.encode())


def test_record_holds_no_content_and_no_message():
    for record in (restore(), soft()):
        assert b"planted" not in orjson.dumps(line_of(record))


def test_fields_of_a_later_version_are_ignored_and_its_semantics_shown():
    line = line_of(restore()) | {"semantics": 2, "profile": {"ranking": "advisory"}}

    assert restore_in(line) == evolve(restore(), semantics=2)


@pytest.mark.parametrize(
    "change",
    [
        {"placement": "reference"},
        {"warnings": [{"code": "rests_on_source", "count": 1}]},
        {"warnings": [{"code": "copied_instead", "count": 1}]},
        *(
            {"fallbacks": [{"fallback": f"copied_{why}", "uri": None}]}
            for why in ("legacy", "compressed", "windows", "in_base", "damaged")
        ),
    ],
)
def test_records_of_builds_with_branches_by_reference_are_read(change: dict[str, Any]):
    line = line_of(restore()) | change

    assert restore_in(line) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"operationId": 7},
        {"mode": "medium"},
        {"sourceTurn": None},
        {"sourceTurn": {"turnId": "t1"}},
        {"seed": {"schemaVersion": 9}},
        {"contextReset": "yes"},
    ],
)
def test_invalid_line_is_not_a_record(change: dict[str, object]):
    assert restore_in(line_of(restore()) | change) is None


def test_valid_records_of_a_damaged_file_are_read():
    lines = [None, 7, {}, line_of(restore()), line_of(restore()), {"semantics": 1}]

    assert restores_in(lines) == (restore(),)


def test_counts_are_those_of_the_transferred_parts():
    assert transferred(FULL, 2) == dict(zip(TRANSFERRED, (2, 1, 1, 1, 1, 2), strict=True))


def test_warnings_are_sorted_by_severity():
    long = evolve(
        FULL,
        pins=(Pinned("rules.md", None, None, V1, "x" * 9000),),
        window=(Message("u1", "w" * 900),),
        drift=(Drift("a.py", V1, V2),),
        missing=(Missing("b.py", V1), Missing("c.py", V1)),
    )
    pack = state_pack(long, state_pack(long).tokens - 1)
    record = restore_of(
        long,
        pack,
        tokens=restore().tokens,
        caps={},
        source_digest="",
        fallbacks=(Fallback("weak_hash", "big"), Fallback("file_only_store")),
        detached=True,
        problems=1,
    )

    assert [(caution.code, caution.count) for caution in record.warnings] == [
        ("problems_in_source", 1),
        ("detached_marker", 1),
        ("pack_truncated", 1),
        ("pin_shortened", 1),
        ("missing_files", 2),
        ("drift", 1),
        ("suspect_facts", 1),
        ("weak_hashes", 1),
    ]
    assert restore(carried()).warnings == ()
    assert [each.code for each in restore(budget=0).warnings][:2] == [
        "pack_empty",
        "pack_truncated",
    ]


# --- words -----------------------------------------------------------------------------------


PLAN = Plan((Step("s1", "look"), Step("s2", "repair")), {"s1": True, "s2": False})
CHOSEN = Decision("d1", None, "repair it", "", None, Evidence("user", "u1"), 5)
PLANNED = evolve(FULL, checkpoint=evolve(FULL.checkpoint, plan=PLAN, decisions=(CHOSEN,)))
OF_FILES = next(line.tokens for line in pack_lines(PLANNED) if line.item == Item("files", "a.py"))
ALL = "the task, 2 notes, 1 plan step, 1 file reference, 1 pin"


def _left_out(record: Restore) -> int:
    """Return how many items the warning about the budget counts."""
    return next(each.count for each in record.warnings if each.code == "pack_truncated")


NONE = restore(PLANNED, 1)
SMALL = restore(PLANNED, OF_FILES)
LONG = evolve(PLANNED, window=(Message("#1", "w" * 9000),), digest="[SESSION_DIGEST v1]\n")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (restore(PLANNED), f"{ALL}, 1 message."),
        (restore(LONG), f"{ALL}, 1 message, a digest."),
        (SMALL, "the task, 2 notes, 1 plan step, 1 file reference; 3 items left out of the pack."),
        (
            restore(PLANNED, 1),
            f"nothing; {_left_out(NONE)} items left out of the pack.",
        ),
        (
            soft(PLANNED),
            "the conversation, the task, 2 notes, 2 plan steps, 1 file reference, 1 pin.",
        ),
        (soft(carried()), "the conversation."),
    ],
)
def test_summary_counts_transferred_and_omitted_parts(record: Restore, told: str):
    stays = "Your files are not changed."
    assert carried_in(record) == f"Carried over: {told} {stays}"


def test_summary_says_whether_the_context_was_reset():
    for record, reset in ((restore(), "Context reset."), (soft(), "Context not reset.")):
        assert headline_of(record) == (
            f"Restored “before the rewrite”: new branch created. {reset}"
        )
    nameless = restore(evolve(FULL, origin=evolve(ORIGIN, label="")))
    assert headline_of(nameless).startswith("Restored m1:")
    assert transferred(PLANNED, 0)["notes"] == 1 + 2 + 2, "the task, notes and steps"


def test_texts_promise_nothing_and_a_warning_counts_in_words():
    promises = re.compile(
        r"guarantee|remember|never|always|same answer|exactly|keeps? (?!the goal)"
    )
    cautions = [
        caution_text(Caution(code, n), restore()) for code in get_args(WarningCode) for n in (1, 2)
    ]
    summaries = [headline_of(restore()), carried_in(soft())]

    for text in (*summaries, *cautions):
        assert promises.search(text) is None
        assert "{" not in text


def test_warning_names_the_files_that_differ():
    one, many = (
        evolve(restore(), drift=tuple(Drift(f"{n}.py", V1, V2) for n in range(count)))
        for count in (1, 7)
    )

    assert caution_text(Caution("drift", 1), one) == "1 file changed since the marker's turn: 0.py"
    assert caution_text(Caution("drift", 7), many) == (
        "7 files changed since the marker's turn: 0.py, 1.py, 2.py, 3.py, 4.py and 2 more"
    )
