"""Which of the user's messages are kept, cut, or give way to a note (JUN-9 to JUN-14)."""

import base64
import random

import pytest

from codex_checkpoints.core.agents.codex.history.item_kinds import plain_message
from codex_checkpoints.core.agents.codex.injected_text import LeftOut
from codex_checkpoints.core.agents.codex.own_messages import (
    CHECKPOINT_LINE,
    HOW_TO_LINE,
    RESTORE_LINE,
)
from codex_checkpoints.core.checkpoint.records import RETAINED_TOKENS
from codex_checkpoints.core.compaction.retained_messages import select
from growth import takes_linear_time
from history_items import (
    ENVIRONMENT,
    PNG,
    SUMMARY,
    Item,
    call,
    image,
    message,
    output,
    pasts,
    text_of,
    user,
    with_parts,
)

MARK = "…1 tokens truncated…"


def of(tokens: int, letter: str = "x") -> Item:
    return user(letter * 4 * tokens)


def kept(*items: Item, budget: int = 20_000) -> list[str]:
    return [text_of(each.item) for each in select(pasts(items), budget).retained]


def lengths(*items: Item, budget: int = 20_000) -> list[int]:
    return [len(text) for text in kept(*items, budget=budget)]


def sizes(*tokens: int, budget: int = RETAINED_TOKENS) -> list[int]:
    """Return the tokens kept of messages of these sizes, each of another letter."""
    items = [of(size, chr(ord("a") + place)) for place, size in enumerate(tokens)]
    return [each.tokens for each in select(pasts(items), budget).retained]


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([19_999], [19_999]),
        ([20_000], [20_000]),
        ([10_000, 10_000], [10_000, 10_000]),
        ([20_001], [8_000]),
        ([5, 19_999], [5, 8_000]),
        ([10_000, 5_000, 5_001], [2_000, 5_000, 5_001]),
        ([10_000, 10_000, 10_000], [2_000, 2_000, 10_000]),
        ([10_000, 10_000, 17_000], [2_000, 2_000, 8_000]),
        ([1_500] * 12 + [4_000], [1_000, *[1_500] * 10, 4_000]),
    ],
    ids=str,
)
def test_long_messages_are_cut_oldest_first_until_all_fit(
    tokens: list[int], kept: list[int]
) -> None:
    assert sizes(*tokens) == kept


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([2_000] * 11, [2_000] * 10),
        ([*[2_000] * 10, 1_999], [1, *[2_000] * 9, 1_999]),
        ([10, *[2_000] * 10], [2_000] * 10),
    ],
    ids=str,
)
def test_messages_that_still_do_not_fit_are_dropped_oldest_first(
    tokens: list[int], kept: list[int]
) -> None:
    assert sizes(*tokens) == kept


def test_three_pasted_logs_leave_all_requests() -> None:
    logs = [user(f"log {number}\n" + "x" * 25_000) for number in range(3)]
    asked = [user(f"request {number}: " + "y" * 3_000) for number in range(17)]

    found = kept(*asked[:6], logs[0], *asked[6:9], logs[1], logs[2], *asked[9:])

    assert [text for text in found if text.startswith("request")] == [
        text_of(item) for item in asked
    ]
    assert len(found) == 20


def test_only_the_newest_of_identical_messages_is_kept() -> None:
    history = pasts([user("go on"), user("fix it"), user("go on")])

    assert [each.place for each in select(history, 20_000).retained] == [1, 2]


def test_another_budget_keeps_another_amount() -> None:
    assert kept(user("aaaa"), user("bbbbcccc"), budget=2) == ["bbbbcccc"]
    assert kept(user("aaaa"), user("bbbbcccc"), budget=3) == ["aaaa", "bbbbcccc"]
    assert kept(user("aaaa"), budget=0) == []


def test_cut_is_in_the_middle_at_whole_characters() -> None:
    text = "é" * 50

    assert kept(user(text), budget=2) == ["éé…23 tokens truncated…éé"]
    assert kept(user("日" * 9), budget=1) == ["…6 tokens truncated…"]


def test_message_of_several_parts_keeps_them_apart_unless_it_is_cut() -> None:
    whole = select(pasts([user("one", "two")]), 2).retained[0]
    cut = select(pasts([user("onex", "twox")]), 1).retained[0]

    assert whole.item == user("one", "two")
    assert cut.item == user(f"on{MARK}ox")
    assert (cut.tokens, cut.cut_tokens) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        ENVIRONMENT,
        SUMMARY,
        f"{HOW_TO_LINE}\nx",
        f"{CHECKPOINT_LINE}\nx",
        f"{RESTORE_LINE}\nx",
        "<turn_aborted>\nx\n</turn_aborted>",
        "<user_shell_command>ls</user_shell_command>",
    ],
)
def test_injected_message_is_never_kept(text: str) -> None:
    assert kept(user("a"), user(text), user("b")) == ["a", "b"]


def test_only_user_messages_are_kept_with_their_places() -> None:
    others = [message("developer", "x"), message("assistant", "x"), call("c"), output("c", "x")]

    found = select(pasts([*others, user("a"), user(SUMMARY), user("b"), user("")]), 20_000).retained

    assert [(text_of(each.item), each.place) for each in found] == [("a", 4), ("b", 6)]


def test_message_that_was_cut_once_stays_the_same_next_time() -> None:
    items = [each.item for each in select(pasts([of(30_000), user("and this")]), 20_000).retained]
    second = select(pasts(items), 20_000)

    assert [each.item for each in second.retained] == items
    assert not any(each.cut_tokens for each in second.retained)


def test_dropped_message_is_reported_with_its_place() -> None:
    history = pasts([user("old"), user("abcd"), message("assistant", "x"), user("efgh")])

    assert [select(history, budget).reached for budget in (0, 1, 2, 3)] == [4, 3, 1, 0]


SIZE = 3008
NOTE = f"[{SIZE} bytes of base64]"
BLOB = base64.b64encode(random.Random(2).randbytes(1200)).decode()
SAFE = BLOB.replace("+", "-").replace("/", "_")


def parts(item: Item) -> tuple[str, ...]:
    return plain_message(item).parts


def test_image_is_replaced_by_a_note_with_its_size() -> None:
    item = with_parts("look", "<image name=[Image #1]>", image(), "</image>", "what is it?")

    assert parts(item) == ("look", f"[left out here: image/png, {SIZE} bytes]", "what is it?")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            f"see data:image/png;base64,{PNG} here",
            f"see [{SIZE} bytes of base64] here",
        ),
        (f"data:;base64,{PNG}!", f"[{SIZE} bytes of base64]!"),
        (
            "a data:image/svg+xml;charset=utf-8," + "%3Csvg" * 50 + " b",
            "a [300 bytes of base64] b",
        ),
        (f"so: {PNG}", f"so: {NOTE}"),
        (f"so: {PNG[:64]}", "so: [48 bytes of base64]"),
        (f"so: {BLOB[:260]}", "so: [195 bytes of base64]"),
        (f"so: {BLOB}.", "so: [1200 bytes of base64]."),
        (
            "so:\n" + "\r\n".join(BLOB[at : at + 64] for at in range(0, 1600, 64)) + "\nthen",
            "so:\n[1200 bytes of base64]\nthen",
        ),
        (
            "so:\n" + "\n".join(BLOB[at : at + 64] for at in range(0, 1600, 64)) + "\nQUI=\nthen",
            "so:\n[1202 bytes of base64]\nthen",
        ),
        (
            f"{PNG} data:image/gif;base64,{'R0lGODlh' * 3} {BLOB}",
            f"{NOTE} [18 bytes of base64] [1200 bytes of base64]",
        ),
        (f"so: {SAFE} there", "so: [1200 bytes of base64] there"),
        ("so: " + "A" * 20_000, "so: [15000 bytes of base64]"),  # nothing but zeros
        ("so: " + "QUFB" * 5_000, "so: [15000 bytes of base64]"),
        (f"so: {''.join(filter(str.isupper, BLOB * 9))[:2000]}.", "so: [1500 bytes of base64]."),
        (f"so: {''.join(filter(str.islower, BLOB * 9))[:2000]}.", "so: [1500 bytes of base64]."),
    ],
    ids=range(15),
)
def test_payload_in_a_text_is_replaced_by_a_note(text: str, left: str) -> None:
    assert parts(user(text)) == (left,)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "abcABC123" * 1000,
        "0123456789abcdef" * 500,
        "/home/ana/" + "deep/" * 300,
        "-" * 400 + "\n" + "_" * 400 + "\n" + "/" * 400,
        "one-word-of-many-" * 30,
        f"{'x' * 64}\n{'-' * 40}",
        BLOB[:256],
        "data:image/png;base64,iVBOR",
        "the data: is here",
        "ssh-ed25519 " + BLOB[:68],
    ],
    ids=range(11),
)
def test_long_words_are_not_payload(text: str) -> None:
    assert parts(user(text)) == (text,)


def test_only_the_request_of_an_editor_message_is_kept() -> None:
    wrapped = (
        "# Context from my IDE setup:\n## Open tabs:\n- a.py\n\n## My request for Codex:\nfix it\n"
    )

    assert parts(user(wrapped)) == ("fix it\n",)
    assert parts(with_parts(image(), "# Context\n", wrapped)) == (
        f"[left out here: image/png, {SIZE} bytes]",
        "fix it\n",
    )


def test_other_parts_are_left_out_too() -> None:
    odd = {"type": "input_file", "file_data": PNG}
    sound = {"type": "input_audio", "audio_url": "data:audio/wav;base64," + "A" * 40}

    assert parts(with_parts("a", odd, sound, image("https://host/x.png"))) == (
        "a",
        f"[left out here: attachment, {len(PNG)} bytes]",
        "[left out here: audio/wav, 30 bytes]",
        "[left out here: image, 18 bytes]",
    )
    assert parts(with_parts({"type": "odd"})) == ("[left out here: attachment, 14 bytes]",)
    assert parts({"type": "message", "role": "user", "content": "plain"}) == ("plain",)
    assert parts({"type": "message", "role": "user"}) == ()


@pytest.mark.parametrize(
    "item",
    [
        with_parts(image()),
        with_parts("<image>", image(), "</image>", " \n"),
        user(f"data:image/png;base64,{PNG}"),
        user(f" {PNG}\n"),
    ],
    ids=range(4),
)
def test_message_that_is_only_payload_is_counted_and_not_kept(item: Item) -> None:
    found = select(pasts([with_parts("look", image()), item, user("b")]), 20_000)

    assert [each.place for each in found.retained] == [0, 2]
    assert found.retained[0].left_out == (LeftOut("image/png", SIZE),)
    assert found.only_payload == (1,)


def test_text_is_searched_in_linear_time() -> None:
    def text(size: int) -> str:
        lines = "\n".join(["x" * 64] * (size // 64))
        return "data:image/png;base64,AAAA" * (size // 26) + "ab/" * (size // 3) + lines

    takes_linear_time(lambda text: plain_message(user(text)), text)
