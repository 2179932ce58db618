"""A replacement made of what somebody else compacted (CKP-20, CKP-23)."""

import attrs

from codex_checkpoints.core.compaction.building import Declined, Replacement, Terms, adopt
from codex_checkpoints.core.compaction.records import remaining
from codex_checkpoints.core.history.tokens import of_items
from compactions import (
    ENVIRONMENT,
    LONG_ANSWER,
    SUMMARY,
    Item,
    compaction,
    image,
    message,
    pasts,
    user,
    with_parts,
)

MANUAL = Terms(placement="manual")
OLD = [user("one"), with_parts("two", image()), LONG_ANSWER, user("one")]


def adopted(*material: Item, terms: Terms = MANUAL) -> Replacement:
    found = adopt(pasts(OLD), material, terms)
    assert isinstance(found, Replacement), found
    return found


def test_what_may_be_kept_of_it_becomes_the_replacement() -> None:
    found = adopted(
        message("developer", "be quick"),
        user(ENVIRONMENT),
        user("one"),
        user(SUMMARY),
        compaction(),
        {"type": "from_the_future"},
    )

    assert found.items == (user("one"), user(SUMMARY), compaction())
    assert found.report.after == of_items(found.items)
    assert found.report.kinds_after == {"compaction": 1, "summary": 1, "user": 1}


def test_the_users_messages_are_found_again_in_the_old_history() -> None:
    found = adopted(user("one"), with_parts("two", image()), user("new"), user("one"), compaction())

    assert found.origins == (0, 1, None, 3, None)
    assert [piece.fate for piece in found.report.pieces] == ["kept", "kept", "replaced", "kept"]
    assert [(each.author, each.ref) for each in remaining(found)] == [
        ("user", "seq:0"),
        ("user", "seq:1"),
        ("user", None),
        ("user", "seq:3"),
        ("codex", None),
    ]


def test_messages_that_somebody_left_out_are_passed_over() -> None:
    found = adopted(with_parts("two", image()), compaction())

    assert found.origins == (1, None)
    assert [piece.fate for piece in found.report.pieces] == [
        *("replaced", "kept", "replaced", "replaced")
    ]


def test_the_oldest_go_when_it_is_beyond_the_target() -> None:
    material = (user("one"), user("x" * 400), user(SUMMARY))
    target = of_items(material[1:])
    found = adopted(*material, terms=attrs.evolve(MANUAL, target=target))

    assert found.items == material[1:]
    assert found.report.after == found.report.bound == target


def test_it_is_declined_for_the_reasons_for_which_ours_is() -> None:
    history = pasts(OLD)

    assert adopt(history, [user(SUMMARY)], Terms(placement="mid_turn")) == Declined(
        "unsupported_placement", {"placement": "mid_turn"}
    )
    assert adopt(history, [user(ENVIRONMENT)], MANUAL) == Declined("missing_context", {"items": 4})
    assert adopt((), [user(SUMMARY)], MANUAL) == Declined("missing_context", {"items": 0})
    found = adopt(history, [user(SUMMARY)], attrs.evolve(MANUAL, target=1))
    assert isinstance(found, Declined)
    assert found.reason == "item_too_large"
    same = pasts([user("one")])
    assert adopt(same, [user("one")], MANUAL) == Declined(
        "not_smaller", {"before": of_items([user("one")]), "after": of_items([user("one")])}
    )
    waived = attrs.evolve(MANUAL, waived=frozenset({"not_smaller"}))
    assert isinstance(adopt(same, [user("one")], waived), Replacement)
