"""What is left out of a user's message, and the note that says so (JUN-9, JUN-10)."""

import base64
import random

import pytest

from codex_checkpoints.core.compaction.building import select
from codex_checkpoints.core.compaction.kinds import plain_message
from codex_checkpoints.core.rollout.contextual import LeftOut
from compactions import PNG, Item, image, pasts, user, with_parts
from growth import takes_time_in_proportion

SIZE = 3008
NOTE = f"[{SIZE} bytes of base64]"
BLOB = base64.b64encode(random.Random(2).randbytes(1200)).decode()


def parts(item: Item) -> tuple[str, ...]:
    return plain_message(item).parts


def test_an_image_gives_way_to_a_note_with_its_size() -> None:
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
    ],
    ids=range(10),
)
def test_payloads_in_a_text_give_way_to_notes(text: str, left: str) -> None:
    assert parts(user(text)) == (left,)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "abcABC123" * 1000,
        "/home/ana/" + "deep/" * 300,
        "0123456789abcdef" * 500,
        BLOB[:256],
        "data:image/png;base64,iVBOR",
        "the data: is here",
        "ssh-ed25519 " + BLOB[:68],
    ],
    ids=range(8),
)
def test_long_words_are_no_payload(text: str) -> None:
    assert parts(user(text)) == (text,)


def test_of_a_message_that_an_editor_wrapped_the_request_alone_is_kept() -> None:
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
def test_a_message_that_is_only_payload_is_not_kept_but_counted(item: Item) -> None:
    found = select(pasts([with_parts("look", image()), item, user("b")]), 20_000)

    assert [each.place for each in found.retained] == [0, 2]
    assert found.retained[0].left_out == (LeftOut("image/png", SIZE),)
    assert found.only_payload == (1,)


def test_a_text_is_looked_through_in_time_that_grows_with_it_alone() -> None:
    def text(size: int) -> str:
        lines = "\n".join(["x" * 64] * (size // 64))
        return "data:image/png;base64,AAAA" * (size // 26) + "ab/" * (size // 3) + lines

    takes_time_in_proportion(lambda text: plain_message(user(text)), text)
