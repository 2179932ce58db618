"""Data for a restore that no checkpoint keeps, read from the bytes of a session."""

from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.core.restore.references import ModeChange, Span, Trace
from derived_state import read_with, seq_of
from rollouts import Form, Step

FORMS = pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])


def trace(data: bytes) -> Trace:
    """Read a whole file."""
    return read_with(Trace(), data)


def told(*steps: Step, **head: Any) -> list[str]:  # noqa: ANN401 - of a head
    """Return the modes that a session tells."""
    return [each.mode for each in trace(r.rollout(r.session(**head), *steps)).traces().modes]


def session(form: Form, *steps: Step) -> bytes:
    folder = r.environment() if form == "bare" else r.several()
    return r.rollout(r.session(form), folder, r.turn(r.user("go"), *steps))


def in_mode(mode: object) -> Step:
    """State the settings of a turn with a collaboration mode."""
    return r.record(
        "turn_context",
        {"turn_id": "t1", "cwd": r.FOLDER, "model": "gpt-5.5", "collaboration_mode": mode},
    )


def begun(turn: str, mode: str) -> Step:
    return r.event("task_started", turn_id=turn, collaboration_mode_kind=mode)


@FORMS
def test_file_is_flagged_as_touched_or_sent_to_the_model_or_both(form: Form):
    read = (r.shell(f"cat {name}.py", reads=[f"{name}.py"]) for name in ("read", "both"))
    changed = (r.patch(update="both.py"), r.patch(add="made.py"), r.patch(delete="gone.py"))
    moved = r.patch(move=("old.py", "new.py"))
    other = (r.shell("ls listed.py"), r.image("shot.png"), r.patch(update="no.py", done=False))

    traces = trace(session(form, *read, *changed, moved, *other)).traces()

    assert traces.sent == {"read.py", "both.py", "shot.png"}
    assert traces.touched == {"both.py", "made.py", "gone.py", "old.py", "new.py"}
    assert "c9" not in traces.patches


@FORMS
def test_patches_are_named_by_their_call_newest_first(form: Form):
    script = "apply_patch <<'EOF'\n" + r.patch_text(update="b.py") + "\nEOF\n"
    failed = r.patch(update="c.py", done=False, call="p3")
    both = (r.patch(update="a.py", call="p1"), r.shell(script, "Success. Updated", call="p2"))

    assert trace(session(form, *both, failed)).traces().patches == ("p2", "p1")


@FORMS
def test_partial_read_with_known_lines_is_kept(form: Form):
    data = session(
        form,
        r.shell("sed -n '10,20p' a.py", reads=["a.py"]),
        r.shell("cd sub && head -n 5 b.py", reads=["sub/b.py"]),
        r.shell("sed -n '1,3p;9p' c.py && make", reads=["c.py"]),
        r.shell("sed -n '7,$p' open.py; tail -n 4 end.py; cat whole.py"),
    )
    spans = (Span("c.py", 9, 9), Span("c.py", 1, 3), Span("sub/b.py", 1, 5), Span("a.py", 10, 20))

    assert trace(data).traces().spans == spans
    other = session("paginated", r.shell("sed -n 1,5p a.py", reads=["b.py"]))
    assert (trace(other).traces().sent, trace(other).traces().spans) == ({"b.py"}, ())


def test_newest_of_many_partial_reads_are_kept():
    steps = [r.shell(f"sed -n '{n},{n}p' a.py") for n in range(1, 81)]

    spans = trace(session("legacy", *steps, r.shell("sed -n '20,20p' a.py"))).traces().spans

    assert [span.start for span in spans] == [20, *range(80, 20, -1), 19, 18, 17]


def test_mode_changes_are_kept_with_their_seq():
    data = r.rollout(
        r.session(),
        begun("t1", "default"),
        in_mode({"mode": "default", "settings": {"developer_instructions": "secret words"}}),
        r.user("a", turn="t1"),
        r.complete("t1"),
        begun("t2", "plan"),
        r.user("b", turn="t2"),
        r.complete("t2"),
        in_mode({"mode": "default"}),
    )

    assert trace(data).traces().modes == (
        ModeChange(1, "default", "t1"),
        ModeChange(seq_of(data, "task_started", '"t2"'), "plan", "t2"),
        ModeChange(seq_of(data, "turn_context"), "default", "t1"),
    )


def test_mode_of_another_session_is_ignored():
    strange = (in_mode(7), in_mode({"mode": ["plan"]}), in_mode(None), in_mode({}))
    go = (begun("t1", "plan"), r.user("go", turn="t1"), r.user(images=1))
    naming = (r.compacted("x", []), begun("n", "x"), r.user("name", turn="n"), r.complete("n"))
    parents = (begun("t0", "x"), r.user("theirs", turn="t0"), r.complete("t0"))

    assert told(r.user("go", turn="t1"), *strange) == []
    assert told(*naming, *go) == ["plan"]  # only names a file of ours
    assert told(r.turn(r.user("a"), name="t0"), *naming[:1], *go) == ["plan"]
    assert told(*parents, *go, subagent_history_start_ordinal=5) == ["plan"]


def test_file_without_a_valid_name_is_ignored():
    data = session("legacy", r.shell(f"cat {'d/' * 600}a.py"), r.patch(update="../shop"))

    assert trace(data).traces().sent == frozenset()
    assert trace(data).traces().touched == frozenset()
