"""What a replacement holds, part by part (DIG-9)."""

from collections.abc import Sequence

import attrs
import pytest

from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.building import Replacement, Terms, build
from codex_checkpoints.core.compaction.handoff import handoff
from codex_checkpoints.core.compaction.records import Contents, contents_of
from codex_checkpoints.core.digest.composing import Digest
from codex_checkpoints.core.history.tokens import of_item
from compactions import CHECKPOINT, LONG_ANSWER, Item, pasts, user

CAPS = Caps()
VIEW = view_v1(CHECKPOINT, CAPS)
TEXT = "[SESSION_DIGEST v1]\n\n[STATUS]\n- last turn: answered\n"
DIGEST = Digest(TEXT, -(-len(TEXT) // 4), 300)
WORK = [LONG_ANSWER] * 4


def quoting(digest: Digest) -> Terms:
    def quoted(_beside: Sequence[str], _before: int) -> Digest:
        return digest

    return Terms(placement="manual", digest=quoted)


def contents(items: list[Item], terms: Terms, *, live: bool = False) -> Contents:
    built = build(pasts(items), CHECKPOINT, CAPS, terms)
    assert isinstance(built, Replacement), built
    found = contents_of(built, live=live)
    parts = sum(each.tokens for each in found.messages) + of_item(handoff(VIEW, found.digest.text))
    assert parts == built.report.after
    assert found.state_tokens == of_item(handoff(VIEW))
    return found


def codes(found: Contents) -> list[tuple[str, int]]:
    assert all(each.message.endswith(".") for each in found.warnings)
    return [(each.code, each.count) for each in found.warnings]


def test_the_parts_are_the_messages_the_view_and_the_digest() -> None:
    found = contents([user("fix the login"), *WORK, user("and\ntest it")], quoting(DIGEST))

    assert [each.text for each in found.messages] == ["fix the login", "and\ntest it"]
    assert [each.ref for each in found.messages] == ["#0", "#5"]
    assert found.view == VIEW
    assert found.digest == DIGEST
    assert codes(found) == []


def test_what_does_not_fit_is_warned_of() -> None:
    long = user("a long log\n" * 4_000)
    terms = attrs.evolve(quoting(DIGEST), budget=2_002)

    found = contents([user("b" * 9_000), long, *WORK, user("fix it")], terms)

    assert found.messages[-2].cut_tokens > 0
    assert codes(found) == [("messages_left_out", 1), ("messages_cut", 1)]


@pytest.mark.parametrize("too_large_for", ["history", "window"])
def test_a_digest_that_there_is_no_room_for_is_left_out_and_warned_of(too_large_for: str) -> None:
    large = Digest(TEXT + "- x\n" * 20_000, 20_014, 32_000)
    terms = quoting(large)
    if too_large_for == "window":
        terms = attrs.evolve(terms, target=of_item(handoff(VIEW)) + 200, waived=frozenset())

    found = contents([user("fix the login"), *WORK], terms)

    assert (found.digest.text, found.digest.budget) == ("", 32_000)
    assert codes(found) == [("digest_left_out", 1)]


@pytest.mark.parametrize(("budget", "told"), [(0, []), (49, [("digest_too_small", 1)])])
def test_a_budget_that_no_digest_fits_into_is_told(budget: int, told: list[object]) -> None:
    found = contents([user("fix the login"), *WORK], quoting(Digest(budget=budget)))

    assert codes(found) == told


def test_a_session_that_codex_has_open_is_warned_of() -> None:
    found = contents([user("fix the login"), *WORK], quoting(DIGEST), live=True)

    assert codes(found) == [("session_live", 1)]
