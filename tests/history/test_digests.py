"""Digest and recall through the doors, and over the sources of a session."""

import json
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.core.compaction.handoff import bundle
from codex_checkpoints.service.history.digests import Digests
from doors.test_mcp import result
from homes import Home, go_on, refusal, thread
from peer import Peer

SESSION = thread(1)
READ = "def opens(word):\n    return word == known_word\n"
FAILED = "FAILED tests/test_cave.py::test_opens - AssertionError: no\n1 failed in 0.1s"
MEND = r.turn(
    r.user("Mend the sesame."),
    r.shell("cat cave.py", READ, reads=["cave.py"]),
    r.patch(update="cave.py"),
    r.assistant("Mended: `opens` compares with known_word."),
)
TRY = r.turn(
    r.user("Now run the tests."),
    r.shell("pytest -q tests/test_cave.py", FAILED, exit_code=1, status="failed"),
    r.assistant("test_opens fails. Shall I mend it?"),
)
WORK = r.rollout(r.session(), MEND, TRY)


@pytest.fixture
def home(home: Home) -> Home:
    home.put(WORK)
    return home


def digest_of(home: Home, *options: str, session: str = SESSION) -> Any:  # noqa: ANN401 - JSON
    return home.json("digest", session, *options)


def recalled(home: Home, ref: str, *options: str, session: str = SESSION) -> Any:  # noqa: ANN401
    return home.json("recall", session, "--ref", ref, *options)


# --- digest --------------------------------------------------------------------------------------


def test_command_prints_the_digest_and_explains_each_line(home: Home) -> None:
    told = digest_of(home)
    text = told["text"]

    assert home.here("digest", SESSION).stdout == text.encode()
    assert told["tokens"] == -(-len(text.encode()) // 4) <= told["budget"] == 8000
    assert told["left"] == {}
    headings = [line[1:-1] for line in text.splitlines() if line.startswith("[")][1:]
    assert headings == list(dict.fromkeys(line["section"] for line in told["lines"]))
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line["text"] for line in told["lines"]] == lines
    for line in told["lines"]:
        assert line["why"]
        assert line["tokens"] == -(-len(f"{line['text']}\n".encode()) // 4)
        assert (line["ref"] is None) == (line["section"] == "STATUS")
        if line["ref"] is not None:
            assert (line["sessionId"], line["turnId"]) == (SESSION, f"t{line['turn']}")
            assert f" {line['ref']} " in line["text"]


@pytest.mark.parametrize("turn", ["1", "t1"])
def test_digest_at_a_turn_is_the_digest_at_its_end(home: Home, turn: str) -> None:
    home.put(r.rollout(r.session(thread=thread(2)), MEND), 2)
    then = digest_of(home, session=thread(2))["text"]

    assert digest_of(home, "--at", turn)["text"] == then
    assert digest_of(home, "--at", "2")["text"] == digest_of(home)["text"] != then


@pytest.mark.parametrize("tokens", [0, 49])
def test_budget_below_the_minimum_gives_no_text(home: Home, tokens: int) -> None:
    told = digest_of(home, "--tokens", str(tokens))

    assert told == {"text": "", "tokens": 0, "budget": tokens, "lines": [], "left": {}}
    done = home.here("digest", SESSION, "--tokens", str(tokens))
    assert done.stdout == b""
    assert f"needs a budget of 50 tokens or more; this one is {tokens}".encode() in done.stderr


def test_smallest_budget_gives_the_status(home: Home) -> None:
    told = digest_of(home, "--tokens", "50")

    assert told["text"].startswith("[SESSION_DIGEST v1]\n\n[STATUS]\n- last turn: answered asks\n")
    assert told["tokens"] <= 50
    assert sum(told["left"].values()) > 0
    assert digest_of(home, "--tokens", "32000")["text"] == digest_of(home)["text"]


@pytest.mark.parametrize("tokens", [-1, 32_001])
def test_budget_outside_its_bounds_is_refused(home: Home, tokens: int) -> None:
    error = home.refused("digest", SESSION, f"--tokens={tokens}")

    assert error["code"] == "limit_exceeded"
    assert error["facts"] == {"limit": 32_000, "tokens": tokens}


@pytest.mark.parametrize(
    ("window", "setting", "budget"),
    [(258_400, 8000, 8000), (64_000, 8000, 4000), (64_000, 100, 100), (1600, 8000, 300)],
)
def test_default_budget_is_the_setting_within_a_sixteenth_of_the_window(
    home: Home, window: int, setting: int, budget: int
) -> None:
    home.config(f"digestTokens = {setting}\n")
    home.put(r.rollout(r.session(), MEND, r.turn(r.user("Go on."), r.tokens(900, window=window))))

    assert digest_of(home)["budget"] == budget


def test_digests_can_be_switched_off(home: Home) -> None:
    home.config("digestTokens = 0\n")

    assert digest_of(home)["text"] == ""
    assert digest_of(home, "--tokens", "300")["text"] != ""


# --- recall --------------------------------------------------------------------------------------


def test_each_anchor_of_a_digest_leads_to_its_quoted_record(home: Home) -> None:
    told = digest_of(home)
    anchored = [line for line in told["lines"] if line["ref"] is not None]

    assert {line["section"] for line in anchored} >= {"REQUESTS", "OUTCOMES", "CHANGES", "CHECKS"}
    for line in anchored:
        record = recalled(home, line["ref"])
        assert {key: record[key] for key in ("ref", "sessionId", "turn", "turnId")} == {
            key: line[key] for key in ("ref", "sessionId", "turn", "turnId")
        }
        assert record["offset"] == 0
        assert record["total"] == len(record["text"])
    texts = {line["text"]: recalled(home, line["ref"]) for line in anchored}
    for quoted, kind, text in (
        ("Mend the sesame.", "user", "Mend the sesame."),
        ("Mended: `opens`", "assistant", "Mended: `opens` compares with known_word."),
        ("exit 1: pytest", "output", FAILED),
    ):
        (record,) = (each for line, each in texts.items() if quoted in line)
        assert record["kind"] == kind
        assert text in record["text"]


@pytest.mark.parametrize(
    ("ref", "kind", "text"),
    [
        ("t1", "user", "Mend the sesame."),
        ("u2", "user", "Now run the tests."),
        ("c1", "call", READ),
        ("seq:3", "user", "Mend the sesame."),
        ("3", "user", "Mend the sesame."),
        (" #3 ", "user", "Mend the sesame."),
    ],
)
def test_record_is_named_by_number_turn_or_id(home: Home, ref: str, kind: str, text: str) -> None:
    record = recalled(home, ref)

    assert (record["ref"], record["sessionId"], record["kind"]) == (ref, SESSION, kind)
    assert text in record["text"]


def test_turn_is_recalled_with_all_its_records(home: Home) -> None:
    text = recalled(home, "t2")["text"]

    assert text.index("Now run the tests.") < text.index("1 failed") < text.index("Shall I mend")
    assert "Mended" not in text


@pytest.mark.parametrize("ref", ["#0", "#1", "#999999", "t3", "t0", "other-call", "x" * 300, "#"])
def test_reference_that_cannot_be_recalled_is_unknown(home: Home, ref: str) -> None:
    # `#0` is the head of the file, `#1` the begin of a task.
    other = r.turn(r.user("Elsewhere."), r.shell("cat x", "other-words", call="other-call"))
    home.put(r.rollout(r.session(thread=thread(2)), *[MEND] * 9, other), 2)

    error = home.refused("recall", SESSION, "--ref", ref)

    assert error["code"] == "unknown_ref"
    assert error["facts"] == {"sessionId": SESSION, "ref": ref[:200]}


def test_anchor_of_another_session_is_unknown(home: Home) -> None:
    other = r.turn(r.user("Elsewhere."), r.shell("cat x", "other-words", call="other-call"))
    home.put(r.rollout(r.session(thread=thread(2)), *[MEND] * 9, other), 2)
    anchor = digest_of(home, session=thread(2))["lines"][-1]["ref"]

    for ref in (anchor, "other-call"):
        assert "other-words" in recalled(home, ref, session=thread(2))["text"]
        assert home.refused("recall", SESSION, "--ref", ref)["code"] == "unknown_ref"
    assert home.json("recall", SESSION, "--query", "other-words") == []


def test_long_record_is_returned_in_parts_that_make_the_whole(home: Home) -> None:
    printed = "".join(f"{number} größer 🙂\n" for number in range(1500))
    home.put(r.rollout(r.session(), r.turn(r.user("Look."), r.shell("cat big", printed))))
    (hit, *_) = home.json("recall", SESSION, "--query", "1499 größer")
    whole, offset = "", 0
    while (part := recalled(home, hit["ref"], "--offset", str(offset)))["text"]:
        assert part["offset"] == offset
        assert len(part["text"]) == min(8000, part["total"] - offset)
        whole += part["text"]
        offset += len(part["text"])

    assert len(whole) == part["total"] > 16_000
    assert printed.strip() in whole


def test_terminal_shows_a_record_with_its_place(home: Home) -> None:
    *head, empty = (
        lines := home.here("recall", SESSION, "--ref", "t1").stdout.decode().splitlines()
    )[:3]
    text = lines[3:]

    record = recalled(home, "t1")
    assert head == [
        "Session Mend the sesame. · turn 1",
        f"The whole turn, {record['total']} characters",
    ]
    assert empty == ""
    assert "\n".join(text) == record["text"].rstrip("\n")


def test_lines_are_found_newest_first_and_case_counts_only_with_a_capital(
    home: Home,
) -> None:
    found = home.json("recall", SESSION, "--query", "mend")

    lines = [(hit["turn"], hit["kind"], hit["line"]) for hit in found]
    assert lines == [
        (2, "assistant", "test_opens fails. Shall I mend it?"),
        (1, "assistant", "Mended: `opens` compares with known_word."),
        (1, "user", "Mend the sesame."),
    ]
    assert [hit["ref"] for hit in found] == sorted(
        (hit["ref"] for hit in found), key=lambda ref: -int(ref[1:])
    )
    capital = home.json("recall", SESSION, "--query", "Mend")
    assert capital == found[1:]
    assert home.json("recall", SESSION, "--query", "mend", "--limit", "1") == found[:1]
    printed = home.here("recall", SESSION, "--query", "mend", "--limit", "1").stdout.decode()
    assert printed == f"t2 {found[0]['ref']}  assistant  {found[0]['line']}\n"


@pytest.mark.parametrize("options", [[], ["--ref", "t1", "--query", "x"], ["--query", ""]])
def test_reference_and_text_exclude_each_other(home: Home, options: list[str]) -> None:
    assert home.here("recall", SESSION, *options).returncode == 2


def test_earlier_lookups_are_not_found_again(home: Home) -> None:
    look = r.call("memory_recall", {"query": "known_word"}, "m1")
    found = r.output("m1", "#6 output: return word == known_word")
    before = home.json("recall", SESSION, "--query", "known_word")
    home.put(r.rollout(r.session(), MEND, TRY, r.turn(r.user("Look."), look, found)))

    assert home.json("recall", SESSION, "--query", "known_word") == before != []
    assert "known_word" not in recalled(home, "t3")["text"]
    assert "known_word" in recalled(home, "m1")["text"]


def test_secrets_are_redacted_and_cannot_be_searched(home: Home) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    home.put(r.rollout(r.session(), r.turn(r.user("Look."), r.shell("cat x", f"key {secret}"))))

    assert home.json("recall", SESSION, "--query", secret) == []
    (hit,) = home.json("recall", SESSION, "--query", "key [redacted]")
    assert secret not in json.dumps([hit, recalled(home, hit["ref"])])
    assert secret not in digest_of(home)["text"]


SECRETLY = r.turn(
    r.user("Set it up."),
    r.shell("cat deploy/.env.local", "PLACE=the-hidden-cave", reads=["deploy/.env.local"]),
    r.patch(add="deploy/.env"),
    r.shell("cat notes.md", "the-open-cave", reads=["notes.md"]),
)


def test_ignored_files_are_in_no_digest_and_cannot_be_recalled(
    home: Home,
) -> None:
    home.put(r.rollout(r.session(), SECRETLY))
    quoted = json.dumps(digest_of(home, "--tokens", "32000")["lines"])
    whole_turn = recalled(home, "t1")["text"]

    assert "the-open-cave" in quoted
    assert "the-open-cave" in whole_turn
    for text in (quoted, whole_turn):
        assert "hidden-cave" not in text
        assert ".env" not in text
    assert home.json("recall", SESSION, "--query", "hidden-cave") == []
    for ref in ("c1", "c2"):
        assert home.refused("recall", SESSION, "--ref", ref)["code"] == "unknown_ref"


def test_ignored_files_are_a_setting(home: Home) -> None:
    home.put(r.rollout(r.session(), SECRETLY))
    home.config('digestIgnore = ["notes.*"]\n')

    assert "hidden-cave" in json.dumps(digest_of(home, "--tokens", "32000")["lines"])
    assert "hidden-cave" in recalled(home, "c1")["text"]
    assert home.refused("recall", SESSION, "--ref", "c3")["code"] == "unknown_ref"


# --- the other doors -----------------------------------------------------------------------------


def test_methods_answer_like_the_commands(home: Home) -> None:
    with Peer(home.root, env=home.environment()) as peer:
        peer.start()
        told = peer.call("checkpoints/digest", {"sessionId": SESSION, "turnId": "1", "tokens": 300})
        record = peer.call("checkpoints/recall", {"sessionId": SESSION, "ref": "t1", "offset": 4})
        hits = peer.call("checkpoints/recall", {"sessionId": SESSION, "query": "mend", "limit": 2})
        large = peer.error("checkpoints/digest", {"sessionId": SESSION, "tokens": 32_001})
        unknown = peer.error("checkpoints/recall", {"sessionId": SESSION, "ref": "#999"})
        neither = peer.error("checkpoints/recall", {"sessionId": SESSION})
        too_many = peer.error(
            "checkpoints/recall", {"sessionId": SESSION, "query": "x", "limit": 1001}
        )
        peer.stop()

    assert told == digest_of(home, "--at", "1", "--tokens", "300")
    assert record == {"record": recalled(home, "t1", "--offset", "4"), "items": []}
    found = home.json("recall", SESSION, "--query", "mend", "--limit", "2")
    assert hits == {"record": None, "items": found}
    assert [each["data"]["code"] for each in (large, unknown, neither, too_many)] == [
        *("limit_exceeded", "unknown_ref", "invalid_payload", "invalid_payload"),
    ]


def tool(home: Home, name: str, arguments: dict[str, Any], session: str = SESSION) -> Any:  # noqa: ANN401
    """Call a tool for a session, as Codex does; return its result."""
    return result(home, name, arguments, {"threadId": session})


def test_model_reads_the_digest_beside_the_view_on_request(home: Home) -> None:
    got = tool(home, "memory.read", {"digest": 600})

    digest = digest_of(home, "--tokens", "600")["text"]
    view = home.here("view", SESSION).stdout.decode()
    assert got["structuredContent"]["digest"] == digest
    assert got["content"][0]["text"].startswith(f"{view}\n{digest}\n[ANCHORS]\n")
    without = tool(home, "memory.read", {})
    assert "digest" not in without["structuredContent"]
    assert without["content"][0]["text"].startswith(f"{view}[ANCHORS]\n")


@pytest.mark.parametrize("tokens", [-1, 32_001, 1.5, "600", True, None])
def test_model_cannot_request_a_digest_of_an_invalid_size(home: Home, tokens: object) -> None:
    got = tool(home, "memory.read", {"digest": tokens})

    assert got["isError"]
    wanted = "limit_exceeded" if type(tokens) is int else "invalid_payload"
    assert got["structuredContent"]["code"] == wanted


def test_model_looks_up_records_and_lines_of_its_session(home: Home) -> None:
    record = recalled(home, "t1")
    got = tool(home, "memory.recall", {"ref": "t1"})
    part = tool(home, "memory.recall", {"ref": "t1", "offset": 5})
    found = tool(home, "memory.recall", {"query": "mend", "limit": 2})
    refused = tool(home, "memory.recall", {"ref": "#999"})

    assert got["structuredContent"] == {
        key: record[key] for key in ("ref", "kind", "turn", "text", "offset", "total")
    }
    assert got["content"][0]["text"].endswith(record["text"])
    assert part["structuredContent"]["text"] == record["text"][5:]
    hits = home.json("recall", SESSION, "--query", "mend", "--limit", "2")
    assert found["structuredContent"]["hits"] == [
        {key: hit[key] for key in ("ref", "turn", "kind", "line")} for hit in hits
    ]
    assert found["content"][0]["text"].splitlines() == [
        f"{hit['ref']} {hit['kind']}: {hit['line']}" for hit in hits
    ]
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "unknown_ref"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ref": "t1", "query": "x"},
        {"ref": 3},
        {"query": ""},
        {"query": "x", "limit": 101},
        {"query": "x", "limit": 0},
        {"ref": "t1", "offset": -1},
        {"ref": "t1", "sessionId": SESSION},
    ],
)
def test_invalid_arguments_of_a_model_are_refused(home: Home, arguments: dict[str, Any]) -> None:
    got = tool(home, "memory.recall", arguments)

    assert got["isError"]
    assert got["structuredContent"]["code"] == "invalid_payload"


def test_rolled_back_turns_are_recalled_only_on_the_command_line(home: Home) -> None:
    home.put(r.rollout(r.session("legacy"), MEND, TRY, r.rollback(1)))
    (hit,) = home.json("recall", SESSION, "--query", "Shall I mend")

    assert "Shall I mend" in recalled(home, hit["ref"])["text"]
    assert tool(home, "memory.recall", {"ref": hit["ref"]})["isError"]
    got = tool(home, "memory.recall", {"query": "Shall I mend"})
    assert got["structuredContent"]["hits"] == []
    assert "Shall I mend" not in digest_of(home)["text"]


# --- over the sessions that one goes on from -----------------------------------------------------

LONG = "I looked at every part of the cave. " * 400


def compacted(home: Home, session: str, *options: str) -> str:
    """Compact a session into a new one; return its id."""
    return home.json("compact", session, "--digest-tokens", "4000", *options)["sessionId"]


def grown(home: Home, session: str, *steps: r.Step) -> None:
    """Go on with a session that we made, as Codex does."""
    (path,) = home.root.glob(f"sessions/**/rollout-*-{session}.jsonl")
    go_on(path, session, *steps)


def quotes(told: Any) -> set[tuple[str, str, str]]:  # noqa: ANN401 - JSON
    """Return section, anchor and how the text behind it begins, of what was said and run.

    Only the newest answer stands at length.
    """
    return {
        (line["section"], line["ref"], line["text"].partition(f"{line['ref']} ")[2][:60])
        for line in told["lines"]
        if line["section"] in {"REQUESTS", "OUTCOMES", "CHECKS"}
    }


def handed_over(home: Home, session: str) -> str:
    """Return the digest of the last message that a session begins with."""
    *_, last = home.json("history", session)["items"]
    text = "".join(part["text"] for part in last["content"])
    assert text.startswith("[HOW TO USE SESSION_CHECKPOINT v1]\n")
    assert text.count("[SESSION_CHECKPOINT v1]") == text.count("[SESSION_DIGEST v1]") == 1
    return "".join(text.partition("[SESSION_DIGEST v1]")[1:])


def test_digest_of_the_replacement_substitutes_a_missing_source(home: Home) -> None:
    path = home.put(r.rollout(r.session(), MEND, TRY, r.turn(r.user("Look."), r.assistant(LONG))))
    made = compacted(home, SESSION)
    handed = {line for line in handed_over(home, made).split("\n") if line.startswith("- ")}
    path.unlink()
    grown(home, made, r.turn(r.user("And now?", turn="n1"), r.assistant("All is well.")))

    told = digest_of(home, "--tokens", "8000", session=made)

    stand_ins = [line for line in told["lines"] if line["why"] == "of a session that is gone"]
    bodies = {line.partition("#")[2] for line in handed if "#" in line}
    assert stand_ins
    assert {line["text"].removeprefix("- #") for line in stand_ins} <= bodies
    assert {"OUTCOMES", "CHANGES", "CHECKS"} <= {line["section"] for line in stand_ins}
    assert "All is well." in told["text"]
    again = compacted(home, made, "--force")
    assert bodies & {line.partition("#")[2] for line in handed_over(home, again).split("\n")}


def test_quoted_line_appears_in_later_digests_under_its_anchor(
    home: Home,
) -> None:
    home.put(r.rollout(r.session(), MEND, TRY, r.turn(r.user("Look."), r.assistant(LONG))))
    first = quotes(digest_of(home))
    wanted = {(SESSION, ref): recalled(home, ref)["text"] for _, ref, _ in first}
    at = SESSION
    for number in (1, 2, 3):
        at = compacted(home, at)
        told = digest_of(home, "--tokens", "4000", session=at)

        assert first <= quotes(told)
        assert handed_over(home, at).startswith("[SESSION_DIGEST v1]\n\n[STATUS]\n")
        for (session, ref), text in wanted.items():
            record = recalled(home, ref, session=at)
            assert (record["text"], record["sessionId"]) == (text, session)
            assert record["turn"] is None

        grown(
            home,
            at,
            r.turn(
                r.user(f"Go on, {number}.", ref=f"m{number}"),
                r.assistant(f"Gone on, {number}. {LONG}"),
                name=f"r{number}",
            ),
        )
        told = digest_of(home, "--tokens", "4000", session=at)
        first |= quotes(told)
        own = {line["ref"] for line in told["lines"] if line["sessionId"] == at}
        assert own
        assert own.isdisjoint(ref for _, ref in wanted), "an anchor names one record"
        wanted |= {(at, ref): recalled(home, ref, session=at)["text"] for ref in own}

    sections = {section for section, _, _ in first}
    assert sections == {"REQUESTS", "OUTCOMES", "CHECKS"}
    assert {f"Go on, {number}." for number in (1, 2, 3)} <= {text for _, _, text in first}
    assert [hit["line"][:5] for hit in home.json("recall", at, "--query", "mend")] == [
        *("test_", "Mende", "Mend "),
    ]


def test_source_ends_at_the_cut_of_its_successor(home: Home) -> None:
    home.put(r.rollout(r.session(), MEND, r.turn(r.user("Look."), r.assistant(LONG))))
    made = compacted(home, SESSION)
    go_on(home.path(), SESSION, TRY)

    assert home.json("recall", made, "--query", "Shall I mend") == []
    assert "Shall I mend" not in digest_of(home, session=made)["text"]
    (hit,) = home.json("recall", SESSION, "--query", "Shall I mend")
    assert hit["sessionId"] == SESSION


def test_hard_restore_continues_its_source_up_to_the_marker(home: Home) -> None:
    marker = home.json("mark", SESSION, "--label", "mended", "--turn", "1")["checkpointId"]
    then = digest_of(home, "--at", "1")
    made = home.json("restore", SESSION, marker, "--mode", "hard")["sessionId"]

    assert quotes(then) <= quotes(digest_of(home, session=made))
    assert quotes(then)
    for _, ref, _ in quotes(then):
        record = recalled(home, ref, session=made)
        assert (record["sessionId"], record["turn"]) == (SESSION, None)
        assert record["text"] == recalled(home, ref)["text"]
    assert home.json("recall", made, "--query", "Shall I mend") == []

    grown(home, made, r.turn(r.user("Otherwise, then.", ref="m1"), name="r1"))
    told = digest_of(home, session=made)
    (line,) = (line for line in told["lines"] if line["text"].endswith("Otherwise, then."))
    assert (line["sessionId"], line["turn"]) == (made, 1)
    assert recalled(home, line["ref"], session=made)["text"] == "Otherwise, then."
    assert home.refused("recall", SESSION, "--ref", line["ref"])["code"] == "unknown_ref"


# --- in a replacement ----------------------------------------------------------------------------


def replacement(home: Home, *options: str) -> tuple[str, Any]:
    """Compact the first session; return the last message of the replacement, and the report."""
    report = home.json("compact", SESSION, *options)
    *_, last = home.json("history", report["sessionId"])["items"]
    return "".join(part["text"] for part in last["content"]), report


def digest_in(text: str) -> str:
    return "".join(text.partition("[SESSION_DIGEST v1]")[1:])


def busy(total: int, window: int = 258_400) -> bytes:
    """Write a session with much to quote, whose context has so many tokens."""
    printed = [
        "".join(f"name_{turn}_{line} = value_{turn}_{line}\n" for line in range(200))
        for turn in range(10)
    ]
    turns = [
        r.turn(r.user(f"Part {n}."), r.shell(f"cat p{n}.py", text), r.assistant(LONG[:3600]))
        for n, text in enumerate(printed)
    ]
    end = r.turn(r.turn_context(), r.user("And now?"), r.tokens(total, window=window))
    return r.rollout(r.session(), *turns, end)


@pytest.mark.parametrize(
    ("total", "window", "setting", "budget"),
    [
        (200_000, 258_400, 8000, 8000),
        (200_000, 64_000, 8000, 4000),
        (12_000, 258_400, 8000, 3000),
        (12_000, 258_400, 500, 500),
        (1_000, 258_400, 8000, 300),
    ],
)
def test_replacement_digest_takes_a_sixteenth_of_the_window_and_a_quarter_of_the_old(
    home: Home, total: int, window: int, setting: int, budget: int
) -> None:
    home.config(f"digestTokens = {setting}\n")
    home.put(busy(total, window))

    text, report = replacement(home)

    size = -(-len(digest_in(text).encode()) // 4)
    assert budget * 0.8 < size <= budget
    assert report["tokensAfter"] <= report["bound"]


def test_number_overrides_window_and_settings_as_the_budget(home: Home) -> None:
    home.config("digestTokens = 0\n")
    home.put(busy(2_000, 30_000))

    text, _ = replacement(home, "--digest-tokens", "2000")

    assert 1600 < -(-len(digest_in(text).encode()) // 4) <= 2000


@pytest.mark.parametrize(
    ("settings", "options"), [("digestTokens = 0\n", []), ("", ["--digest-tokens", "0"])]
)
def test_without_a_budget_the_view_is_alone(home: Home, settings: str, options: list[str]) -> None:
    home.config(settings)
    home.put(busy(200_000))

    text, report = replacement(home, *options)

    view = home.here("view", report["sessionId"]).stdout.decode()
    assert text == bundle(view)


def test_budget_outside_its_bounds_compacts_nothing(home: Home) -> None:
    home.put(busy(200_000))

    error = home.refused("compact", SESSION, "--digest-tokens", "32001")

    assert error["code"] == "limit_exceeded"
    assert len(home.json("sessions")) == 1


def test_messages_beside_a_digest_are_not_quoted_again(home: Home) -> None:
    home.put(busy(200_000))

    text, _ = replacement(home)

    assert "Part 3." not in text
    assert "[OUTCOMES]" in digest_in(text)
    assert "[REQUESTS]" not in digest_in(text)


def test_preview_has_the_parts_for_each_budget(home: Home) -> None:
    home.put(busy(200_000))
    with Peer(home.root) as peer:
        peer.start()
        usual, small = (
            peer.call("checkpoints/compactPreview", {"sessionId": SESSION, "digestTokens": tokens})
            for tokens in (None, 600)
        )
        refs = [each["ref"] for each in small["contents"]["messages"]]
        recalled = [
            peer.call("checkpoints/recall", {"sessionId": SESSION, "ref": ref})["record"]["text"]
            for ref in refs
        ]
        done = peer.call("checkpoints/compact", {"sessionId": SESSION, "digestTokens": 600})

    for told, budget in ((usual, 8000), (small, 600)):
        parts, digest = told["contents"], told["contents"]["digest"]
        *said, last = (item["content"][0]["text"] for item in told["replacement"])
        assert [each["text"] for each in parts["messages"]] == said
        assert last == bundle(parts["view"], digest["text"])
        assert [each["text"] for each in digest["lines"]] == [
            line for line in digest["text"].splitlines() if line.startswith("- ")
        ]
        assert told["digestTokens"] == digest["tokens"] <= digest["budget"] == budget
        tokens = sum(each["tokens"] for each in parts["messages"])
        rest = told["tokensAfter"] - (told["tokensBeside"] or 0) - tokens - parts["stateTokens"]
        assert 0.9 < digest["tokens"] / rest < 1.1  # an estimate counts what JSON adds, too
    assert len(small["contents"]["digest"]["lines"]) < len(usual["contents"]["digest"]["lines"])
    assert small["contents"]["digest"]["left"]["OUTCOMES"] > 0
    assert recalled == [each["text"] for each in small["contents"]["messages"]]
    assert (done["replacement"], done["contents"]) == (small["replacement"], None)


def test_second_preview_includes_new_notes_and_pins(home: Home) -> None:
    home.put(busy(200_000))
    with Peer(home.root) as peer:
        peer.start()
        asked = {"sessionId": SESSION}
        before = peer.call("checkpoints/compactPreview", asked)["contents"]["view"]
        evidence = {"source": "user", "ref": "task"}
        note = {"kind": "fact", "key": "opens", "value": "at noon", "evidence": evidence}
        peer.call("checkpoints/applyUpdate", asked | {"payload": note})
        peer.call("checkpoints/pin", asked | {"text": "It opens to a word."})
        after = peer.call("checkpoints/compactPreview", asked)["contents"]

    assert "at noon" not in before
    assert "at noon" in after["view"]
    assert "It opens to a word." in after["digest"]["text"]


# --- files that are elsewhere, or gone ---------------------------------------------------------


def test_digest_of_a_file_outside_the_home_includes_the_base_beside_it(
    home: Home, tmp_path: Path
) -> None:
    base = r.rollout(r.session(thread=thread(2)), r.turn(r.user("The sesame is in the cave.")))
    later = r.rollout(
        r.session(thread=thread(3), history_base=r.based_on(thread(2), 5, len(base))),
        r.turn(r.user("Open it.")),
    )
    (tmp_path / home.path(2).name).write_bytes(base)
    there = tmp_path / home.path(3).name
    there.write_bytes(later)

    assert "The sesame is in the cave." in digest_of(home, session=str(there))["text"]
    assert "The sesame is in the cave." in recalled(home, "t1", session=str(there))["text"]


def test_missing_session_file_is_a_refusal_and_not_an_internal_error(home: Home) -> None:
    with home.house() as house:
        house.sessions.refresh()
        home.path(1).unlink()
        for ask in (
            lambda: Digests(house.sessions).recall(SESSION, "#1"),
            lambda: Digests(house.sessions).search(SESSION, "sesame", 5),
        ):
            assert refusal(ask).code == "unreadable_source"


# --- the same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_followed_session_has_the_digest_of_a_full_reading(
    home: Home, form: r.Form, tmp_path: Path
) -> None:
    end = r.turn(r.user("Take it back."), r.assistant("Done."))
    data = r.rollout(r.session(form), MEND, TRY, end, r.rollback(1), r.compacted("Summed up.", []))
    lines = data.splitlines(keepends=True)
    other = Home(tmp_path / "other")
    path = home.put(lines[0])
    texts: list[str] = []
    with home.house() as house:
        for line in lines[1:]:
            with path.open("ab") as file:
                file.write(line)
            house.sessions.refresh()
            followed = Digests(house.sessions).digest(SESSION, None, 600)
            other.put(path.read_bytes())
            with other.house() as fresh:
                assert Digests(fresh.sessions).digest(SESSION, None, 600) == followed
            texts.append(followed.text)
    assert any("Take it back." in text for text in texts)
    assert "Take it back." not in texts[-1]
    assert "Summed up." in texts[-1]
