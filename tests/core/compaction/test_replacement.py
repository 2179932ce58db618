"""A replacement, its parts, its report, and why there is none (JUN-8, JUN-45, CKP-7, DIG-9)."""

from collections.abc import Sequence

import attrs
import pytest

from codex_checkpoints.core.agents.codex.history.tokens import (
    Calibration,
    Figure,
    of_item,
    of_items,
)
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.contents import CompactionContents, contents_of
from codex_checkpoints.core.compaction.handoff import handoff
from codex_checkpoints.core.compaction.replacement import Declined, Replacement, Terms, build
from codex_checkpoints.core.digest.render import Digest
from history_items import (
    CHECKPOINT,
    EMPTY,
    ENVIRONMENT,
    LONG_ANSWER,
    SUMMARY,
    Item,
    call,
    image,
    message,
    output,
    pasts,
    user,
    with_parts,
)

CAPS = Caps()
MANUAL = Terms(placement="manual")
HANDOFF = handoff(view_v1(CHECKPOINT, CAPS))
SESSION = [
    user(ENVIRONMENT),
    user("fix the login"),
    call("c1"),
    output("c1", "x" * 40_000),
    with_parts(image()),
    LONG_ANSWER,
    with_parts("like here", image()),
]


def built(items: list[Item], terms: Terms = MANUAL) -> Replacement:
    found = build(pasts(items), CHECKPOINT, CAPS, terms)
    assert isinstance(found, Replacement), found
    return found


def declined(items: list[Item], terms: Terms = MANUAL, checkpoint: object = CHECKPOINT) -> Declined:
    found = build(pasts(items), CHECKPOINT if checkpoint is CHECKPOINT else EMPTY, CAPS, terms)
    assert isinstance(found, Declined), found
    return found


def test_replacement_is_user_messages_followed_by_the_handoff() -> None:
    assert built(SESSION).items == (
        user("fix the login"),
        user("like here", "[left out here: image/png, 3008 bytes]"),
        HANDOFF,
    )


def test_new_handoff_replaces_earlier_handoffs_summaries_and_context() -> None:
    first = built(SESSION)
    context = [message("developer", "be kind"), user(ENVIRONMENT), user(SUMMARY)]

    second = built([*context, *first.items, user("go on"), LONG_ANSWER])

    assert second.items == (*first.items[:-1], user("go on"), HANDOFF)


def test_report_says_how_each_item_was_treated() -> None:
    report = built(SESSION).report

    assert [(piece.kind, piece.author, piece.fate) for piece in report.pieces] == [
        ("context", "codex", "replaced"),
        ("user", "user", "kept"),
        ("tool_call", "assistant", "replaced"),
        ("tool_output", "tool", "replaced"),
        ("user", "user", "only_payload"),
        ("assistant", "assistant", "replaced"),
        ("user", "user", "kept"),
    ]
    assert [(piece.place, piece.at, piece.ref) for piece in report.kept] == [
        (n, f"2026-11-20T10:00:0{n}.000Z", f"seq:{n}") for n in (1, 6)
    ]
    assert [piece.place for piece in report.dropped] == [0, 2, 3, 4, 5]
    assert report.truncated == ()
    assert report.kinds_before == {
        **dict.fromkeys(("assistant", "context", "tool_call", "tool_output"), 1),
        "user": 3,
    }
    assert report.kinds_after == {"handoff": 1, "user": 2}


@pytest.mark.parametrize(
    ("after", "remark"),
    [
        (19_150, "saves_nothing"),
        (19_281, "saves_nothing"),
        (18_628, "saves_little"),
        (17_235, "saves_little"),
        (17_234, None),
    ],
)
def test_compaction_that_saves_less_than_a_tenth_is_reported(
    after: int, remark: str | None
) -> None:
    report = built(SESSION).report

    told = attrs.evolve(report, before=Figure(19_150, "reported"), after=after).remark

    assert told == remark


@pytest.mark.parametrize(
    ("texts", "budget", "fates"),
    [
        (["one", "x" * 400, "y" * 400], 150, "over_budget truncated kept replaced"),
        (["", "one", ""], 20_000, "replaced kept replaced replaced"),
        (["", "one", ""], 1, "over_budget kept replaced replaced"),
        (["go on", "one", "go on"], 20_000, "merged kept kept replaced"),
    ],
)
def test_message_beyond_the_budget_is_cut_and_older_ones_are_dropped(
    texts: list[str], budget: int, fates: str
) -> None:
    terms = Terms(placement="manual", budget=budget)
    report = built([*map(user, texts), LONG_ANSWER], terms).report

    assert [piece.fate for piece in report.pieces] == fates.split()
    assert [piece.cut_tokens for piece in report.truncated] == [50] * ("truncated" in fates)


def test_sizes_are_given_before_and_after() -> None:
    found = built(SESSION, Terms(placement="manual", before=Figure(70_000, "reported")))

    assert found.report.before == Figure(70_000, "reported")
    again = found.report.sent_again
    assert again > 0, "the next turn sends the standing context beside it"
    assert found.report.after == of_items(found.items) + again <= found.report.bound
    assert built(SESSION).report.before == Figure(of_items(SESSION), "estimated")


def test_calibration_of_a_session_applies_to_every_size() -> None:
    bare, size = built(SESSION).report, of_items(SESSION)
    known = Calibration(9_000, 900)

    report = built(SESSION, Terms(placement="manual", calibration=known)).report
    assert report.before == Figure(size * 9 // 10 + 9_000, "estimated")
    assert report.after == bare.after * 9 // 10 + 9_000
    assert report.bound == bare.bound * 9 // 10 + 9_000

    target = bare.after - bare.sent_again + 5_000
    report = built(SESSION, Terms(placement="manual", calibration=known, target=target)).report
    assert report.after == bare.after * 9 // 10 + 9_000
    assert report.bound == (target + bare.sent_again) * 9 // 10 + 9_000


def test_oldest_messages_are_dropped_one_by_one_until_the_target_is_met() -> None:
    items = [user(letter * 400) for letter in "abcd"] + [LONG_ANSWER]
    each = of_item(items[0])
    target = of_item(HANDOFF) + 2 * each

    found = built(items, Terms(placement="manual", target=target))

    assert found.items == (items[2], items[3], HANDOFF)
    assert found.report.after == found.report.bound == target
    assert [piece.fate for piece in found.report.pieces] == [
        *("over_target", "over_target", "kept", "kept", "replaced")
    ]


@pytest.mark.parametrize(
    "target", [of_item(HANDOFF) - 1, of_item(HANDOFF) + 10], ids=["handoff", "newest message"]
)
def test_nothing_is_built_when_one_item_alone_is_too_large(target: int) -> None:
    found = declined([user("a" * 400), LONG_ANSWER], Terms(placement="manual", target=target))

    assert found.reason == "item_too_large"
    assert found.facts["target"] == target


@pytest.mark.parametrize("placement", ["mid_turn", "", "now", "MANUAL"])
def test_unsupported_placement_is_refused(placement: str) -> None:
    assert declined(SESSION, Terms(placement=placement)) == Declined(
        "unsupported_placement", {"placement": placement}
    )


def test_open_turn_keeps_its_history() -> None:
    terms = Terms(placement="manual", turn_ended=False)

    assert declined(SESSION, terms) == Declined("turn_not_complete", {})
    assert built(SESSION, attrs.evolve(terms, waived=frozenset({"turn_not_complete"}))).items


def test_session_below_its_threshold_is_not_compacted() -> None:
    terms = Terms(placement="pre_turn", before=Figure(152_999, "reported"), trigger=153_000)

    assert declined(SESSION, terms) == Declined(
        "below_threshold", {"tokens": 152_999, "trigger": 153_000}
    )
    assert built(SESSION, attrs.evolve(terms, before=Figure(153_000, "reported")))
    assert built(SESSION, attrs.evolve(terms, trigger=None))


def test_replacement_that_is_not_smaller_is_refused_unless_forced() -> None:
    small = [user("a")]
    insists = Terms(placement="manual", waived=frozenset({"not_smaller"}))

    found = declined(small)
    assert found.reason == "not_smaller"
    assert found.facts == {"before": of_items(small), "after": of_items([*small, HANDOFF])}
    assert built(small, insists).items == (user("a"), HANDOFF)


def test_replacement_without_content_is_not_built() -> None:
    assert declined([]) == Declined("missing_context", {"items": 0})
    assert declined([LONG_ANSWER], checkpoint=EMPTY) == Declined("missing_context", {"items": 1})
    assert isinstance(build(pasts([user("a"), LONG_ANSWER]), EMPTY, CAPS, MANUAL), Replacement)


VIEW = view_v1(CHECKPOINT, CAPS)
TEXT = "[SESSION_DIGEST v1]\n\n[STATUS]\n- last turn: answered\n"
DIGEST = Digest(TEXT, -(-len(TEXT) // 4), 300)
WORK = [LONG_ANSWER] * 4


def quoting(digest: Digest) -> Terms:
    def quoted(_beside: Sequence[str], _before: int) -> Digest:
        return digest

    return Terms(placement="manual", digest=quoted)


def contents(items: list[Item], terms: Terms, *, live: bool = False) -> CompactionContents:
    built = build(pasts(items), CHECKPOINT, CAPS, terms)
    assert isinstance(built, Replacement), built
    found = contents_of(built, live=live)
    parts = sum(each.tokens for each in found.messages) + of_item(handoff(VIEW, found.digest.text))
    assert parts == built.report.after
    assert found.state_tokens + found.digest.tokens == of_item(handoff(VIEW, found.digest.text))
    return found


def codes(found: CompactionContents) -> list[tuple[str, int]]:
    assert all(each.message.endswith(".") for each in found.warnings)
    return [(each.code, each.count) for each in found.warnings]


def test_parts_are_the_messages_the_view_and_the_digest() -> None:
    found = contents([user("fix the login"), *WORK, user("and\ntest it")], quoting(DIGEST))

    assert [each.text for each in found.messages] == ["fix the login", "and\ntest it"]
    assert [each.ref for each in found.messages] == ["#0", "#5"]
    assert found.view == VIEW
    assert found.digest == DIGEST
    assert codes(found) == []


def test_part_that_does_not_fit_causes_a_warning() -> None:
    long = user("a long log\n" * 4_000)
    terms = attrs.evolve(quoting(DIGEST), budget=2_002)

    found = contents([user("b" * 9_000), long, *WORK, user("fix it")], terms)

    assert found.messages[-2].cut_tokens > 0
    assert codes(found) == [("messages_left_out", 1), ("messages_cut", 1)]


@pytest.mark.parametrize("too_large_for", ["history", "window"])
def test_digest_without_room_is_left_out_with_a_warning(too_large_for: str) -> None:
    large = Digest(TEXT + "- x\n" * 20_000, 20_014, 32_000)
    terms = quoting(large)
    if too_large_for == "window":
        terms = attrs.evolve(terms, target=of_item(handoff(VIEW)) + 200, waived=frozenset())

    found = contents([user("fix the login"), *WORK], terms)

    assert (found.digest.text, found.digest.budget) == ("", 32_000)
    assert codes(found) == [("digest_left_out", 1)]


@pytest.mark.parametrize(("budget", "told"), [(0, []), (49, [("digest_too_small", 1)])])
def test_budget_below_any_digest_is_reported(budget: int, told: list[object]) -> None:
    found = contents([user("fix the login"), *WORK], quoting(Digest(budget=budget)))

    assert codes(found) == told


def test_session_open_in_codex_causes_a_warning() -> None:
    found = contents([user("fix the login"), *WORK], quoting(DIGEST), live=True)

    assert codes(found) == [("session_live", 1)]
