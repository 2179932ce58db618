"""References of a restore: flags, chunks, regions, patches, tool outputs, and drift."""

from codex_checkpoints.core.checkpoint.records import Artifact, ArtifactKind, Checkpoint, Plan
from codex_checkpoints.core.restore.references import (
    MAX_SPANS,
    Drift,
    Fallback,
    FileChunk,
    FileReference,
    Missing,
    References,
    Region,
    Span,
    SystemArtifact,
    Traces,
    chunk_id,
    drift_of,
    missing_of,
    references_of,
    regions_of,
    spans_of,
    weak_hashes,
)
from updates import UNKNOWN, V1, V2


def checkpoint(*artifacts: tuple[str, ArtifactKind, str | None]) -> Checkpoint:
    """Hold these artifacts, each observed after the one before it."""
    known = {uri: Artifact(uri, kind, found, n) for n, (uri, kind, found) in enumerate(artifacts)}
    return Checkpoint(9, None, Plan(), (), known, {}, ())


def file(uri: str, found: str | None = V1) -> FileReference:
    return FileReference(uri, found, None, touched=False, sent_to_model=False)


def test_files_are_newest_first_with_hash_size_and_flags():
    found = references_of(
        checkpoint(
            ("read.py", "file", V1),
            ("both.py", "file", V2),
            ("make", "command", None),
            ("gone.py", "file", None),
        ),
        Traces(frozenset({"both.py", "gone.py"}), frozenset({"read.py", "both.py"})),
        {"read.py": 3, "both.py": 4},
        {},
    )

    assert found.files == (
        FileReference("gone.py", None, None, touched=True, sent_to_model=False),
        FileReference("both.py", V2, 4, touched=True, sent_to_model=True),
        FileReference("read.py", V1, 3, touched=False, sent_to_model=True),
    )


def test_chunk_names_its_lines_and_has_their_hash_if_known():
    spans = (Span("a.py", 3, 9), Span("b.py", 1, 1))

    found = references_of(checkpoint(), Traces(spans=spans), {}, {"a.py#L3-L9": V1})

    assert found.chunks == (
        FileChunk("a.py#L3-L9", "a.py", 3, 9, V1),
        FileChunk("b.py#L1-L1", "b.py", 1, 1, None),
    )
    assert [chunk_id(span) for span in spans] == [chunk.chunk_id for chunk in found.chunks]


def test_patches_are_named_by_their_call_and_outputs_by_their_uri():
    found = references_of(
        checkpoint(("docs.find/c1", "tool_output", V1), ("web/c2", "tool_output", None)),
        Traces(patches=("p2", "p\n1")),
        {},
        {},
    )

    assert found.system == (
        SystemArtifact("patch", "p2"),
        SystemArtifact("patch", "p%0A1"),
        SystemArtifact("tool_output", "web/c2", None),
        SystemArtifact("tool_output", "docs.find/c1", V1),
    )


def test_branch_continues_from_its_restored_references():
    earlier = References(
        (FileReference("a.py", V1, 3, touched=True, sent_to_model=True),),
        (FileChunk("a.py#L1-L2", "a.py", 1, 2, V2), FileChunk("a.py#L3-L9", "a.py", 3, 9, V2)),
        (SystemArtifact("patch", "p1"),),
    )
    traces = Traces(spans=(Span("a.py", 3, 9),), patches=("p2",))

    found = references_of(checkpoint(("a.py", "file", V2)), traces, {}, {"a.py#L1-L2": V1}, earlier)

    assert found.files == (FileReference("a.py", V2, None, touched=True, sent_to_model=True),)
    assert [(chunk.chunk_id, chunk.hash) for chunk in found.chunks] == [
        ("a.py#L3-L9", None),
        ("a.py#L1-L2", V1),
    ]
    assert [system.id for system in found.system] == ["p2", "p1"]


def test_newest_chunks_are_kept():
    earlier = References(chunks=(FileChunk("old#L1-L1", "old", 1, 1, None),))
    spans = tuple(Span("a.py", n, n) for n in range(1, MAX_SPANS + 1))

    assert spans_of(Traces(spans=spans), earlier) == spans
    assert spans_of(Traces(spans=spans[1:]), earlier)[-1] == Span("old", 1, 1)


def test_regions_are_disjoint_ranges_in_one_list():
    spans = [("b.py", 1, 2), ("a.py", 30, 40), ("a.py", 1, 5), ("a.py", 4, 9), ("a.py", 10, 12)]
    chunks = tuple(FileChunk(f"{n}", uri, a, b, V1) for n, (uri, a, b) in enumerate(spans))

    assert regions_of(References((file("a.py"), file("c.py"), file("b.py")), chunks)) == (
        Region("a.py", ((1, 12), (30, 40))),
        Region("b.py", ((1, 2),)),
    )


def test_file_out_of_sight_has_nothing_to_read_again():
    chunk = FileChunk("a.py#L1-L2", "a.py", 1, 2, None)

    assert regions_of(References((file("a.py", None),), (chunk,))) == ()


def test_drift_is_reported_once_a_file_with_both_hashes():
    then = {"same": V1, "other": V1, "weak now": V1, "gone": V1, "unseen": V1}
    now = {"same": V1, "other": V2, "weak now": "stat:1-1", "unseen": UNKNOWN, "new": V1}

    assert drift_of(then, now) == (Drift("other", V1, V2), Drift("weak now", V1, "stat:1-1"))
    assert missing_of(then, now) == (Missing("gone", V1), Missing("unseen", V1))
    assert weak_hashes(now) == (Fallback("weak_hash", "weak now"),)
    assert weak_hashes({"b": "stat:1-1", "a": V1}, {"a": "stat:2-2", "b": None}) == (
        Fallback("weak_hash", "a"),
        Fallback("weak_hash", "b"),
    )
