"""`view_v1`: every byte of it, every cap, and that it looks at nothing but its two arguments."""

import builtins
import copy
import datetime as dt
import os
import random
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs
import pytest

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    ArtifactKind,
    BadCaps,
    Caps,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    EvidenceSource,
    Fact,
    Plan,
    Step,
    Task,
    from_bytes,
    to_bytes,
)
from codex_checkpoints.core.checkpoint.view import view_v1

T = TypeVar("T")
SECTIONS = (
    *("[TASK]", "[PLAN]", "[RECENT_ARTIFACTS]"),
    *("[DECISIONS]", "[FACTS_VALID]", "[FACTS_SUSPECT]"),
)


def evidence(source: EvidenceSource = "user", ref: str = "u1") -> Evidence:
    return Evidence(source, ref)


def planned(*steps: tuple[str, bool]) -> Plan:
    """A plan of steps by id, each done or not."""
    told = tuple(Step(name, f"do {name}") for name, _ in steps)
    return Plan(told, dict(steps), evidence())


def artifact(uri: str, kind: ArtifactKind = "file", digest: str | None = None) -> Artifact:
    return Artifact(uri, kind, digest, 1)


def decision(name: str, supersedes: str | None = None, text: str = "decide") -> Decision:
    return Decision(name, None, f"{text} {name}", "because", supersedes, evidence(), 1)


def fact(value: str, *on: str, digest: str | None = "sha256:1") -> Fact:
    """A fact that rests on these uris, each with the same hash."""
    return Fact(value, evidence(), tuple(Dependency(uri, digest) for uri in on), 1)


def checkpoint(
    task: str | None = None,
    plan: Plan | None = None,
    artifacts: tuple[Artifact, ...] = (),
    decisions: tuple[Decision, ...] = (),
    facts: Mapping[str, Fact] | None = None,
) -> Checkpoint:
    """A checkpoint whose artifacts are recent in the order given."""
    return Checkpoint(
        9,
        None if task is None else Task(task, evidence()),
        plan or Plan(),
        decisions,
        {each.uri: each for each in artifacts},
        facts or {},
        tuple(each.uri for each in artifacts),
    )


def section(shown: Checkpoint, heading: str, caps: Caps | None = None) -> list[str]:
    """Return the lines below a heading of the view of a checkpoint."""
    lines = f"{view_v1(shown, caps or Caps())}\n".split("\n")
    start = lines.index(heading) + 1
    return lines[start : lines.index("", start)]


CODE, DOCS = Dependency("src/auth.py", "sha256:9f2c"), Dependency("docs.search/c8", "sha256:77aa")
CONFIG = Dependency("src/config.py", "sha256:old")
FULL = checkpoint(
    "Add token refresh to the login flow",
    Plan(
        (Step("p1", "Read the auth module"), Step("p2", "Write the refresh test")),
        {"p1": True, "p2": False},
        evidence(),
    ),
    (
        artifact("src/auth.py", digest="sha256:9f2c"),
        artifact("pytest -q", "command"),
        artifact("docs.search/c8", "tool_output", "sha256:77aa"),
        artifact("mail.read/c9", "tool_output"),
        artifact("src/config.py", digest="sha256:new"),
        artifact("gone.py"),
    ),
    (
        Decision("d1", "cookie", "Drop it", "simpler", None, evidence("user", "m41"), 3),
        Decision("d3", None, "Keep it", "clients need it", "d1", evidence("user", "m42"), 4),
        Decision("d4", None, "Log more", "to see", None, evidence("file", "src/auth.py"), 5),
    ),
    {
        "auth.entry": Fact("login() in src/auth.py", evidence("file", "src/auth.py"), (CODE,), 5),
        "auth.ttl": Fact(
            "900 seconds",
            evidence("tool_output", "c8"),
            (CODE, CONFIG, Dependency("gone.py", "sha256:1")),
            6,
        ),
        "auth.owner": Fact("Ana", evidence("user", "m42"), (), 6),
        "auth.deps": Fact(
            "three files",
            evidence("tool_output", "c8"),
            (Dependency("src/auth.py"), DOCS, Dependency("src/config.py", "sha256:new")),
            7,
        ),
    },
)


def test_the_empty_checkpoint_is_seven_headings():
    assert view_v1(checkpoint(), Caps()) == (
        "[SESSION_CHECKPOINT v1]\n"
        "\n[TASK]\n"
        "\n[PLAN]\n"
        "\n[RECENT_ARTIFACTS]\n"
        "\n[DECISIONS]\n"
        "\n[FACTS_VALID]\n"
        "\n[FACTS_SUSPECT]\n"
    )


def test_a_full_checkpoint_has_a_line_for_each_record():
    assert view_v1(FULL, Caps()) == (
        "[SESSION_CHECKPOINT v1]\n"
        "\n"
        "[TASK]\n"
        "- Add token refresh to the login flow\n"
        "\n"
        "[PLAN]\n"
        "- [ ] Write the refresh test (id=p2)\n"
        "- [x] Read the auth module (id=p1)\n"
        "\n"
        "[RECENT_ARTIFACTS]\n"
        "- file: src/auth.py (hash=sha256:9f2c)\n"
        "- cmd:  pytest -q\n"
        "- tool: docs.search/c8 (hash=sha256:77aa)\n"
        "- tool: mail.read/c9\n"
        "- file: src/config.py (hash=sha256:new)\n"
        "- file: gone.py\n"
        "\n"
        "[DECISIONS]\n"
        "- Keep it \u2014 clients need it (id=d3 supersedes=d1 evidence=user:m42)\n"
        "- Log more \u2014 to see (id=d4 evidence=file:src/auth.py)\n"
        "\n"
        "[FACTS_VALID]\n"
        "- auth.deps: three files (evidence=tool_output:c8 deps=3)\n"
        "- auth.entry: login() in src/auth.py (evidence=file:src/auth.py deps=1)\n"
        "- auth.owner: Ana (evidence=user:m42 deps=0)\n"
        "\n"
        "[FACTS_SUSPECT]\n"
        "- auth.ttl: 900 seconds (why=SUSPECT dep=src/config.py)\n"
    )


def test_the_first_of_two_failing_dependencies_is_named_in_the_order_of_the_fact():
    files = (artifact("b", digest="sha256:2"), artifact("a", digest="sha256:3"))
    facts = {"ba": fact("x", "b", "a"), "ab": fact("y", "a", "b"), "gone": fact("z", "c", "a")}

    assert section(checkpoint(artifacts=files, facts=facts), "[FACTS_SUSPECT]") == [
        "- ab: y (why=SUSPECT dep=a)",
        "- ba: x (why=SUSPECT dep=b)",
        "- gone: z (why=SUSPECT dep=c)",
    ]


@pytest.mark.parametrize(
    ("now", "then", "stands"),
    [
        pytest.param("sha256:1", None, True, id="known now, not asked for"),
        pytest.param("unknown:", "unknown:", False, id="unknown equals nothing"),
        pytest.param(None, None, False, id="unknown now, not asked for"),
        pytest.param("absent", None, False, id="no such artifact, not asked for"),
    ],
)
def test_fact_is_valid_while_each_dependency_is_known_and_unchanged(
    now: str | None, then: str | None, stands: bool
):
    files = () if now == "absent" else (artifact("a", digest=now),)
    shown = checkpoint(artifacts=files, facts={"k": fact("v", "a", digest=then)})

    assert len(section(shown, "[FACTS_VALID]")) == stands
    assert len(section(shown, "[FACTS_SUSPECT]")) == (not stands)


def test_facts_are_sorted_by_key_in_code_point_order():
    files = (artifact("a", digest="sha256:1"),)
    valid = {key: fact("x") for key in ("z", "é", "a", "B")}
    suspect = {key + "!": fact("x", "a", digest="sha256:2") for key in ("é", "z", "B", "a")}
    shown = checkpoint(artifacts=files, facts=valid | suspect)

    for heading in ("[FACTS_VALID]", "[FACTS_SUSPECT]"):
        assert [line[2] for line in section(shown, heading)] == ["B", "a", "z", "é"]


def test_only_the_last_decision_of_a_chain_is_shown_even_without_room():
    chain = checkpoint(decisions=(decision("a"), decision("b", "a"), decision("x")))

    last = "- decide x \u2014 because (id=x evidence=user:u1)"
    assert section(chain, "[DECISIONS]") == [
        "- decide b \u2014 because (id=b supersedes=a evidence=user:u1)",
        last,
    ]
    assert section(chain, "[DECISIONS]", Caps(max_decisions=1)) == [last]


def test_open_steps_come_first_and_the_nearest_of_each_are_kept():
    plan = planned(("a", True), ("b", False), ("c", True), ("d", False), ("e", True), ("f", False))
    shown = checkpoint(plan=plan)

    assert [line[-2] for line in section(shown, "[PLAN]")] == ["b", "d", "f", "a", "c", "e"]
    assert section(shown, "[PLAN]", Caps(max_open_plan_steps=2, max_done_plan_steps=1)) == [
        "- [ ] do b (id=b)",
        "- [ ] do d (id=d)",
        "- [x] do e (id=e)",
    ]
    unsaid = checkpoint(plan=Plan((Step("a", "x"),), {}, None))
    assert section(unsaid, "[PLAN]") == ["- [ ] x (id=a)"]


def test_kept_artifact_has_a_line_and_its_uri_is_never_cut():
    uri = "d/" * 400 + "x"
    forgetful = Checkpoint(9, None, Plan(), (), {uri: artifact(uri)}, {}, ("gone", uri))

    lines = section(forgetful, "[RECENT_ARTIFACTS]", Caps(max_value_chars=1))
    assert lines == [f"- file: {uri}"]


SHA = "sha256:ce72bbe0047d" + "a" * 52
STAT = "stat:70000000-1795168800000000000"


@pytest.mark.parametrize(
    ("now", "seen", "shown"),
    [
        (SHA, None, "a.py (hash=sha256:ce72bbe0047d)"),
        (SHA, SHA, "a.py (hash=sha256:ce72bbe0047d)"),
        (SHA, "sha256:" + "b" * 64, "a.py (hash=sha256:ce72bbe0047d changed)"),
        (STAT, STAT, f"a.py (hash={STAT})"),
        (None, SHA, "a.py (changed)"),
        (None, None, "a.py"),
    ],
)
def test_hash_is_abbreviated_and_a_changed_file_is_marked(
    now: str | None, seen: str | None, shown: str
):
    known = Artifact("a.py", "file", now, 1, seen_hash=seen)

    assert section(checkpoint(artifacts=(known,)), "[RECENT_ARTIFACTS]") == [f"- file: {shown}"]


# --- caps ----------------------------------------------------------------------------------------

THREE = checkpoint(
    "abc",
    planned(("o1", False), ("o2", False), ("o3", False), ("d1", True), ("d2", True), ("d3", True)),
    (artifact("r1"), artifact("r2"), artifact("r3")),
    (decision("x1"), decision("x2"), decision("x3")),
    {name: fact("x") for name in ("v1", "v2", "v3")}
    | {name: fact("x", "nowhere") for name in ("w1", "w2", "w3")},
)
"""Three of everything."""


@pytest.mark.parametrize(
    ("cap", "heading", "mark", "firsts"),
    [
        ("maxOpenPlanSteps", "[PLAN]", r"id=(o.)", ["o1", "o2", "o3"]),
        ("maxDonePlanSteps", "[PLAN]", r"id=(d.)", ["d3", "d2", "d1"]),
        ("maxDecisions", "[DECISIONS]", r"id=(x.)", ["x3", "x2", "x1"]),
        ("maxFactsValid", "[FACTS_VALID]", r"(v.):", ["v1", "v2", "v3"]),
        ("maxFactsSuspect", "[FACTS_SUSPECT]", r"(w.):", ["w1", "w2", "w3"]),
        ("maxRecentArtifacts", "[RECENT_ARTIFACTS]", r"file: (r.)", ["r1", "r2", "r3"]),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 1000])
def test_section_holds_the_right_lines_up_to_its_cap(
    cap: str, heading: str, mark: str, firsts: list[str], size: int
):
    caps = Caps().replaced({cap: size})
    view, others = view_v1(THREE, caps), view_v1(THREE, Caps())

    found = re.findall(mark, "\n".join(section(THREE, heading, caps)))

    assert sorted(found) == sorted(firsts[:size])
    assert [line for line in view.split("\n") if line in SECTIONS] == list(SECTIONS)
    assert len(others.split("\n")) - len(view.split("\n")) == max(0, 3 - size)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1, "…"), (2, "a…"), (3, "ab…"), (4, "abcd"), (5, "abcd"), (160, "abcd"), (10**6, "abcd")],
)
def test_every_value_is_cut_to_the_same_number_of_code_points(size: int, shown: str):
    full = checkpoint(
        "abcd",
        Plan((Step("s", "abcd"),), {"s": False}, None),
        (artifact("abcd", "command"), artifact("abcd.py"), artifact("abcd/c1", "tool_output")),
        (Decision("abcdefg", None, "abcd", "abcd", None, evidence(), 1),),
        {"abcdefg": fact("abcd"), "w": fact("abcd", "abcdefg.py")},
    )

    lines = view_v1(full, Caps(max_value_chars=size)).split("\n")

    assert [line for line in lines if line.startswith("-")] == [
        f"- {shown}",
        f"- [ ] {shown} (id=s)",
        f"- cmd:  {shown}",
        "- file: abcd.py",
        "- tool: abcd/c1",
        f"- {shown} \u2014 {shown} (id=abcdefg evidence=user:u1)",
        f"- abcdefg: {shown} (evidence=user:u1 deps=0)",
        f"- w: {shown} (why=SUSPECT dep=abcdefg.py)",
    ]


@pytest.mark.parametrize("unit", ["x", "é", "日", "🦜", "e\u0301", "👩\u200d💻", "\U0010ffff"])
def test_value_over_160_code_points_is_always_cut(unit: str):
    for length in (159, 160, 161, 162, 1000):
        text = (unit * length)[:length]
        for size in (160, 161, 10**9):
            (line,) = section(checkpoint(text), "[TASK]", Caps(max_value_chars=size))
            assert line == "- " + (text if length <= 160 else text[:159] + "…")
            assert line.encode().decode() == line


# --- what a value could do -----------------------------------------------------------------------

FORGED = "x\n[FACTS_VALID]\n- y: z (evidence=user:u1 deps=0)"
BREAKS = [
    *("\n", "\r", "\r\n", "\t", "\v", "\f", "\x00", "\x1b", "\x1c", "\x7f"),
    *("\x85", "\x9f", "\u2028", "\u2029", "\u202e", "\u2066", "\u2069"),
]


def every_field(text: str) -> Checkpoint:
    """A checkpoint that says `text` in each place that holds one."""
    said = Evidence("user", text, text)
    return Checkpoint(
        1,
        Task(text, said),
        Plan((Step(text, text), Step("d" + text, text)), {"d" + text: True}, said),
        (Decision(text, text, text, text, None, said, 1), decision("n", text, text)),
        {
            text: Artifact(text, "file", text, 1),
            "c" + text: Artifact("c" + text, "command", None, 1),
        },
        {
            text: Fact(text, said, (), 1),
            "s" + text: Fact(text, said, (Dependency("gone" + text, text),), 1),
        },
        (text, "c" + text),
    )


def test_no_field_of_a_checkpoint_can_add_a_line():
    plain = view_v1(every_field("x y"), Caps())

    for wall in BREAKS:
        assert view_v1(every_field(f"x{wall}y"), Caps()) == plain, ascii(wall)


def test_no_field_of_a_checkpoint_can_forge_a_heading():
    read = from_bytes(to_bytes(every_field(FORGED.replace("\n", "\u2028\n"))))

    for shown in (every_field(FORGED), read):
        headings = [line for line in view_v1(shown, Caps()).splitlines() if line.startswith("[")]
        assert headings == ["[SESSION_CHECKPOINT v1]", *SECTIONS]


def test_spaces_are_kept_and_the_ends_trimmed_before_the_cut():
    assert section(checkpoint("\n  a   b \t\n"), "[TASK]") == ["- a   b"]
    assert section(checkpoint("\n\n ab cd"), "[TASK]", Caps(max_value_chars=4)) == ["- ab …"]


# --- caps that are none --------------------------------------------------------------------------


@pytest.mark.parametrize("cap", sorted(Caps().as_json()))
def test_cap_is_zero_or_more_and_the_value_length_one_or_more(cap: str):
    values = [-1, 1.0, 1.5, True, False, "1", None, [1], float("nan"), float("inf")]
    for value in [*values, *([0] if cap == "maxValueChars" else [])]:
        with pytest.raises(BadCaps, match=cap):
            Caps().replaced({cap: value})


def test_an_unknown_cap_is_refused_by_name():
    for cap in ("maxFacts", "max_decisions", "", "maxvaluechars", "maxDecisions "):
        with pytest.raises(BadCaps, match=re.escape(repr(cap))):
            Caps().replaced({cap: 1})


def test_naming_some_of_the_seven_caps_keeps_the_others():
    seven = {
        "maxOpenPlanSteps": 12,
        "maxDonePlanSteps": 5,
        "maxDecisions": 12,
        "maxFactsValid": 32,
        "maxFactsSuspect": 12,
        "maxRecentArtifacts": 16,
        "maxValueChars": 160,
    }
    few = Caps(max_decisions=1).replaced({"maxFactsValid": 2})

    assert Caps().as_json() == seven
    assert few.as_json() == seven | {"maxDecisions": 1, "maxFactsValid": 2}


# --- purity --------------------------------------------------------------------------------------


def forbidden(name: str) -> Callable[..., object]:
    """Take the place of what a view must not call."""

    def call(*_arguments: object, **_named: object) -> object:
        raise AssertionError(name)

    return call


def test_view_depends_only_on_its_arguments(monkeypatch: pytest.MonkeyPatch):
    before, expected = copy.deepcopy(FULL), view_v1(FULL, Caps())
    with monkeypatch.context() as patched:
        for owner, names in (
            (builtins, "open input print"),
            (os, "getenv stat urandom getcwd"),
            (time, "time time_ns monotonic perf_counter"),
            (random, "random"),
            (socket, "socket"),
        ):
            for name in names.split():
                patched.setattr(owner, name, forbidden(f"{owner.__name__}.{name}"))
        patched.setattr(dt, "datetime", None)
        patched.setattr(os, "environ", None)

        view = view_v1(FULL, Caps())

    assert (view, before) == (expected, FULL)


def test_view_does_not_depend_on_map_insertion_order():
    plan = attrs.evolve(FULL.plan, done=turned(FULL.plan.done))
    maps = {"artifacts": turned(FULL.artifacts), "facts": turned(FULL.facts)}
    other = attrs.evolve(FULL, plan=plan, **maps)

    assert view_v1(other, Caps()) == view_v1(FULL, Caps())
    assert to_bytes(other) == to_bytes(FULL)


def turned(known: Mapping[str, T]) -> dict[str, T]:
    return dict(reversed(list(known.items())))
