"""Redacted lines hold no secret, no image, and no data bound to one account (TEA-1)."""

import base64
import json
import random
from typing import Any

import orjson
import pytest

from codex_checkpoints.core.checkpoint.redaction import MARK, may_hold_secret
from codex_checkpoints.core.portable.redacted_lines import AUDIO, BINARY, IMAGE, LineRedactor
from planted_secrets import TOKEN, everything
from recorded_kinds import all_records

PASSWORD = "hunter2" + "x9Q"
PICTURE = "data:image/png;base64," + base64.b64encode(b"pixels" * 40).decode()


def line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def leaving(value: object) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(LineRedactor().redacted(line(value)))


def item(kind: str, **fields: object) -> dict[str, object]:
    payload = {"type": kind, **fields}
    return {"timestamp": "t", "ordinal": 7, "type": "response_item", "payload": payload}


QUIET = {"type": "token_count", "info": None, "rate_limits": None}


def test_line_without_anything_to_redact_is_unchanged() -> None:
    data = b'{"timestamp":"t","type":"event_msg","payload":{"type":"note","n":1,"x":"plain"}}'

    assert LineRedactor().redacted(data) == data


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({"text": f"use {TOKEN} now"}, id="a key in a text"),
        pytest.param({"text": f'export API_KEY="{PASSWORD}"'}, id="an assignment in a text"),
        pytest.param({"arguments": json.dumps({"password": PASSWORD})}, id="JSON in a text"),
        pytest.param({"env": {"DB_PASSWORD": PASSWORD}}, id="a key beside a value"),
        pytest.param({"env": [{"name": "API_TOKEN", "value": PASSWORD}]}, id="a name and a value"),
        pytest.param({"command": ["deploy", "--token", PASSWORD]}, id="words of a command"),
        pytest.param({"command": ["mysql", f"-p{PASSWORD}"]}, id="an option of a program"),
        pytest.param({"changes": {f"/ana/{TOKEN}.txt": {"add": "x"}}}, id="a key of an object"),
        pytest.param({"url": f"https://ana:{PASSWORD}@example.com/x"}, id="a password in a URL"),
        pytest.param({"text": f"a\ncurl -u ana:{PASSWORD} x"}, id="after a line break"),
        pytest.param({"a": [[{"b": [f"token={TOKEN}"]}]]}, id="deep inside"),
    ],
)
def test_secret_is_redacted_in_every_form(payload: dict[str, object]) -> None:
    value = {"timestamp": "t", "type": "event_msg", "payload": {"type": "x", **payload}}
    redactor = LineRedactor()

    found = redactor.redacted(line(value))

    assert PASSWORD.encode() not in found
    assert TOKEN.encode() not in found
    assert MARK.encode() in found
    assert len(redactor.secrets) == 1
    json.loads(found)


def test_escapes_hide_no_secret() -> None:
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in TOKEN)
    data = b'{"type":"event_msg","payload":{"text":"%s"}}' % hidden.encode()

    assert TOKEN not in json.loads(LineRedactor().redacted(data))["payload"]["text"]


def test_duplicate_key_hides_no_secret() -> None:
    data = b'{"type":"event_msg","payload":{"text":"%s","text":"plain"}}' % TOKEN.encode()

    assert TOKEN.encode() not in LineRedactor().redacted(data)


def test_quick_check_finds_every_secret_in_json() -> None:
    """Every text with a secret is noticed as it is written in a line."""
    texts = [TOKEN, f"x\ncurl -u a:{PASSWORD} y", f'"password": "{PASSWORD}"', f"\\npm_{'a1' * 20}"]
    for text in texts:
        assert may_hold_secret(json.dumps({"text": text}, ensure_ascii=False)), text


def test_ids_beside_a_secret_word_stay() -> None:
    call = "call_" + "aB3" * 12
    value = item("function_call", name="read_token", call_id=call, id=call, arguments="{}")

    assert leaving(value) == value


def test_account_bound_reasoning_becomes_an_inert_record() -> None:
    redactor = LineRedactor()
    kept = item("reasoning", summary=[], encrypted_content=None)

    found = json.loads(redactor.redacted(line(item("reasoning", encrypted_content="gAAAA"))))

    assert found == {"timestamp": "t", "ordinal": 7, "type": "event_msg", "payload": QUIET}
    assert redactor.left_out == {"encrypted": 1}
    assert not redactor.lost_summary
    assert leaving(kept)["payload"] == {"type": "reasoning", "summary": []}


def test_encrypted_summary_is_dropped_from_a_compaction_and_reported() -> None:
    redactor = LineRedactor()
    user_item = {"type": "message", "role": "user", "content": "hello"}
    summary = {"type": "compaction", "encrypted_content": "gAAAA"}
    value = {"type": "compacted", "payload": {"replacement_history": [user_item, summary]}}

    found = json.loads(redactor.redacted(line(value)))

    assert found["payload"]["replacement_history"] == [user_item]
    assert redactor.lost_summary

    redactor.redacted(line({"type": "compacted", "payload": {"replacement_history": [user_item]}}))
    assert not redactor.lost_summary, "the newest compaction counts"


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ({"type": "input_image", "image_url": PICTURE}, {"type": "input_text", "text": IMAGE}),
        ({"type": "image", "data": "AAAA", "mimeType": "x"}, {"type": "text", "text": IMAGE}),
        ({"type": "image", "image_url": PICTURE}, {"type": "text", "text": IMAGE}),
        ({"text": f"![]({PICTURE})"}, {"text": f"![]({IMAGE})"}),
    ],
)
def test_image_is_left_out(part: object, left: object) -> None:
    redactor = LineRedactor()

    found = json.loads(redactor.redacted(line({"type": "x", "payload": {"content": [part]}})))

    assert found["payload"]["content"] == [left]
    assert redactor.left_out == {"images": 1}


def test_images_in_a_list_are_left_out() -> None:
    value = {"type": "event_msg", "payload": {"type": "user_message", "images": [PICTURE, PICTURE]}}

    assert leaving(value)["payload"]["images"] == []


def test_repository_address_has_no_user() -> None:
    git = {"repository_url": "https://ana@example.com/shop.git", "branch": "main"}
    value = {"type": "session_meta", "payload": {"id": "s", "git": git}}

    assert leaving(value)["payload"]["git"] == git | {
        "repository_url": "https://example.com/shop.git"
    }


@pytest.mark.parametrize(
    "data",
    [b"{broken", b"\xff\xfe", b"[1]", b'{"a":' * 900 + b"1" + b"}" * 900, b"{\x00}"],
    ids=["no JSON", "no UTF-8", "no object", "too deep", "zero bytes"],
)
def test_unreadable_line_is_never_sent(data: bytes) -> None:
    redactor = LineRedactor()

    assert json.loads(redactor.redacted(data)) == {"type": "event_msg", "payload": QUIET}
    assert redactor.left_out == {"unreadable": 1}


def test_longest_texts_are_shown_once_each_and_redacted() -> None:
    redactor = LineRedactor()
    for number in range(30):
        text = f"{number:02} {TOKEN} " + "x" * (100 + number)
        redactor.redacted(line({"type": "x", "payload": {"a": text, "b": text}}))
    redactor.redacted(line({"type": "x", "payload": {"a": "short"}}))

    longest = redactor.longest
    assert [each.line for each in longest] == list(range(30, 20, -1))
    assert all(TOKEN not in each.beginning for each in longest)
    assert [each.chars for each in longest] == sorted((e.chars for e in longest), reverse=True)


def test_earlier_lines_do_not_change_a_line() -> None:
    """The hashes of a pushed history rest on that: the quick way and the whole way agree."""
    lines = everything(TOKEN).splitlines()
    seasoned = LineRedactor()
    for _ in range(2):
        for each in lines:
            seasoned.redacted(each)

    for each in lines:
        assert seasoned.redacted(each) == LineRedactor().redacted(each)


def test_no_kind_of_record_leaks_a_secret() -> None:
    redactor = LineRedactor()

    found = b"\n".join(map(redactor.redacted, everything(TOKEN).splitlines()))

    assert TOKEN.encode() not in found
    assert b"gAAAA" not in found
    assert found.count(b"\n") + 1 == len(everything(TOKEN).splitlines()) == redactor.lines
    assert set(redactor.kinds) == {"github", "url_password"}


# Each is a secret wherever it stands: in a field of its own, in a command, and beside other texts.
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(TOKEN, id="a key with a known beginning"),
        pytest.param(f"password={PASSWORD}", id="an assignment"),
        pytest.param(f"mysql -p{PASSWORD} db", id="a command line"),
        pytest.param(f"https://ana:{PASSWORD}@example.com/x", id="an address"),
    ],
)
def test_every_known_kind_of_record_is_redacted(secret: str) -> None:
    for record in all_records(secret):
        found = LineRedactor().redacted(orjson.dumps(record))

        assert PASSWORD.encode() not in found, record
        assert TOKEN.encode() not in found, record
        assert orjson.loads(found)["type"] == record["type"]


def test_recordings_are_left_out() -> None:
    sound = "data:audio/wav;base64," + base64.b64encode(b"sounds" * 40).decode()
    record = {"type": "message", "content": [{"type": "input_audio", "audio_url": sound}]}
    redactor = LineRedactor()

    said = redactor.redacted(orjson.dumps({"type": "response_item", "payload": record}))
    typed = redactor.redacted(
        orjson.dumps(
            {"type": "event_msg", "payload": {"message": f"hear {sound}", "audio": [sound]}}
        )
    )

    assert orjson.loads(said)["payload"]["content"] == [{"type": "input_text", "text": AUDIO}]
    assert orjson.loads(typed)["payload"] == {"message": f"hear {AUDIO}", "audio": []}
    assert redactor.left_out == {"audio": 3}


@pytest.mark.parametrize(
    ("media_type", "left_out"),
    [("image/png", {"images": 1}), ("audio/wav", {"audio": 1}), ("text/plain", {})],
)
def test_image_or_recording_that_a_result_embeds_is_left_out(
    media_type: str, left_out: dict[str, int]
) -> None:
    blob = base64.b64encode(b"bytes" * 40).decode()
    resource = {"uri": "file:///a", "mimeType": media_type, "blob": blob}
    result = {"Ok": {"content": [{"type": "resource", "resource": resource}]}}
    record = {"type": "event_msg", "payload": {"type": "mcp_tool_call_end", "result": result}}
    redactor = LineRedactor()

    found = orjson.loads(redactor.redacted(orjson.dumps(record)))

    (part,) = found["payload"]["result"]["Ok"]["content"]
    assert part["resource"] == resource | ({"blob": ""} if left_out else {})
    assert redactor.left_out == left_out


def after_texts(count: int) -> LineRedactor:
    """A redactor that has seen long texts: it may then pass over a shorter line."""
    redactor = LineRedactor()
    for number in range(count):
        redactor.redacted(line(item("message", text=f"{number} so " + "it is " * 9_000)))
    return redactor


@pytest.mark.parametrize("front", ["", "data:video/mp4;base64,"])
@pytest.mark.parametrize("longer", [0, 12], ids=["", "after longer texts"])
def test_binary_data_of_any_type_is_left_out(front: str, longer: int) -> None:
    redactor = after_texts(longer)
    blob = front + base64.b64encode(random.Random(1).randbytes(4_000)).decode()

    found = orjson.loads(
        redactor.redacted(line(item("hologram", parts=[{"kind": "x", "d": blob}])))
    )

    assert found["payload"]["parts"] == [{"kind": "x", "d": BINARY}]
    assert redactor.left_out == {"binary": 1}


@pytest.mark.parametrize("front", ["", "data:video/mp4;base64,"])
@pytest.mark.parametrize("size", range(3_054, 3_076))
def test_earlier_lines_do_not_decide_whether_data_is_left_out(front: str, size: int) -> None:
    ramp = bytes(place // 3 % 256 for place in range(size))  # no part of it looks like a secret
    blob = front + base64.b64encode(ramp).decode()
    data = line(item("hologram", parts=[{"kind": "x", "d": blob}]))

    assert after_texts(12).redacted(data) == after_texts(0).redacted(data)


@pytest.mark.parametrize(
    "text",
    ["0123456789abcdef" * 500, "x" * 9_000, "aZ09" * 2_000, "Some words, and more. " * 400],
    ids=["a number in hex", "a filler", "a pattern", "prose"],
)
def test_long_value_that_is_not_binary_data_is_kept(text: str) -> None:
    assert leaving(item("hologram", text=text))["payload"]["text"] == text


def test_encrypted_part_of_a_message_is_dropped_whole() -> None:
    parts = [
        {"type": "input_text", "text": "to you"},
        {"type": "encrypted_content", "encrypted_content": "gAAAAB"},
    ]
    record = {"type": "response_item", "payload": {"type": "agent_message", "content": parts}}
    redactor = LineRedactor()

    found = orjson.loads(redactor.redacted(orjson.dumps(record)))

    assert found["payload"]["content"] == parts[:1]
    assert (redactor.left_out, redactor.lost_summary) == ({"encrypted": 1}, False)
