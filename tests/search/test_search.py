"""Search over all sessions: the hits, their sessions, and their order (RCL-2)."""

import json
import signal
import sys
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.agents.codex.reader import CHUNK
from codex_checkpoints.core.agents.codex.skipping import passing_over
from codex_checkpoints.core.checkpoint.redaction import one_line
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.recall.search import Needle
from codex_checkpoints.operations.search import SearchSessionsParams, search_sessions
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.progress import run_steps
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage.byte_search import ByteSearch
from homes import WAIT, Home, thread
from peer import Peer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OF_SESSION = ("sessionId", "title", "cwd", "updatedAt")

WORK = r.turn(
    r.user("Mend the sesame door."),
    r.shell("cat cave.py", "def opens(word):\n    return word == 'sesame'\n", reads=["cave.py"]),
    r.patch(update="cave.py"),
    r.assistant("The door\topens now.\nIt says Sesame."),
)
NEXT = r.turn(
    r.user("Run it."),
    r.shell("python cave.py sesame", "open\n"),
    r.assistant("It is open."),
)


def found(home: Home, text: str, *options: str) -> list[Any]:
    """Search by the command; return the hits."""
    hits: list[Any] = home.json("search", text, *options)
    return hits


def lines(hits: Sequence[Any]) -> list[tuple[int | None, str, str]]:
    return [(hit["turn"], hit["kind"], hit["line"]) for hit in hits]


def searched(home: Home, text: str, **params: Any) -> list[tuple[str, int | None, int, str]]:  # noqa: ANN401 - any
    """Search in this process; return session, turn, `seq` and line of each hit."""
    with home.house() as house:
        services = Services(house_places(home), house)
        items = run_steps(search_sessions(services, SearchSessionsParams(text, **params))).items
    return [
        (each.session.session_id, hit.turn, hit.seq, hit.line)
        for each in items
        for hit in each.hits
    ]


def house_places(home: Home) -> Any:  # noqa: ANN401 - the folders, which a search does not need
    return home.root


# --- what is a hit -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_hit_names_its_line_session_turn_and_record(
    home: Home, form: Literal["paginated", "legacy", "bare"]
) -> None:
    home.put(r.rollout(r.session(form), WORK, NEXT))
    hits = found(home, "sesame")

    assert lines(hits) == [
        (2, "command", "python cave.py sesame"),
        (1, "assistant", "It says Sesame."),
        (1, "output", "return word == 'sesame'"),
        (1, "user", "Mend the sesame door."),
    ]
    [row] = home.json("sessions")
    for hit in hits:
        assert {name: hit[name] for name in OF_SESSION} == {name: row[name] for name in OF_SESSION}
        assert hit["at"] is None or hit["at"] <= row["updatedAt"]
        record = home.json("recall", thread(1), "--ref", f"#{hit['seq']}")
        assert (record["turn"], record["turnId"]) == (hit["turn"], hit["turnId"])
        assert hit["line"] in record["text"]


def test_ascii_letters_match_without_case_unless_the_text_has_a_capital(home: Home) -> None:
    home.put(r.rollout(r.session(), r.turn(r.user("Sesame sesame"), r.assistant("ÉTÉ été"))))

    assert len(found(home, "sesame")) == len(found(home, "Sesame")) == 1
    assert found(home, "SESAME") == found(home, "SeSame") == []
    assert [hit["line"] for hit in found(home, "été")] == ["ÉTÉ été"]
    assert found(home, "éTé") == found(home, "Été") == []


def test_kind_excludes_all_others(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, NEXT, r.turn(r.patch(add="sesame.py"))))

    kinds = ("user", "assistant", "command", "output", "patch")
    for kind in kinds:
        hits = found(home, "sesame", "--kind", kind)
        assert {hit["kind"] for hit in hits} == {kind}
    two = found(home, "sesame", "--kind", "user", "--kind", "patch")
    assert [hit["kind"] for hit in two] == ["patch", "user"]
    assert {hit["kind"] for hit in found(home, "sesame")} == set(kinds)


def test_kind_file_finds_turns_that_read_or_changed_a_path(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, NEXT))
    home.put(r.rollout(r.session(thread=thread(2)), r.turn(r.user("cave.py is a name"))), 2)

    expected = [(1, "file", "changed cave.py"), (1, "file", "read cave.py")]
    for path in ("cave.py", "./cave.py", f"{r.FOLDER}/cave.py"):
        assert lines(found(home, path, "--kind", "file")) == expected
    for path in ("/", "./"):
        assert home.refused("search", path, "--kind", "file")["code"] == "invalid_payload"
    for path in ("ave.py", "/cave.py", "other/cave.py", f"{r.FOLDER}x/cave.py"):
        assert found(home, path, "--kind", "file") == []


def test_windows_path_matches_either_slash_and_any_case(home: Home) -> None:
    steps = r.turn(r.user("Go."), r.patch(update="src/Cave.py"))
    home.put(r.rollout(r.session(cwd="C:\\proj"), steps))

    for path in (r"c:\proj\src\Cave.py", "C:/proj/src/Cave.py", "src/Cave.py"):
        assert [hit[3] for hit in searched(home, path, kinds=("file",))] == ["changed src/Cave.py"]


def test_secrets_are_not_hits_and_no_line_shows_one_or_a_control_character(home: Home) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 5
    home.put(r.rollout(r.session(), r.turn(r.user(f"my\tkey\x07is {key} here"))))

    assert found(home, key) == []
    assert [hit["line"] for hit in found(home, "here")] == ["my key is [redacted] here"]


def test_instructions_reasoning_and_ignored_files_are_not_hits(home: Home) -> None:
    home.put(
        r.rollout(
            r.session(base_instructions={"text": "sesame"}),
            r.environment("/sesame"),
            r.turn(
                r.user("Look."),
                r.reasoning("sesame"),
                r.shell("cat .env", "A=sesame\n"),
            ),
        )
    )

    assert found(home, "sesame") == []


@pytest.mark.parametrize("text", ["", "  ", "\t", "\x08", "a\nb", "a\r"])
def test_multiline_text_is_refused(home: Home, text: str) -> None:
    assert home.refused("search", text)["code"] == "invalid_payload"


@pytest.mark.parametrize(
    "text",
    ['"', "\\", '\\"', "%", "_", "!", "*", "[a-z]", "(", "%s", "é", "日本", "🐪", "a" * 500,
     "x\ty", "\\u0061", "' OR 1=1"],
)  # fmt: skip
def test_any_text_is_searched_literally(home: Home, text: str) -> None:
    home.put(r.rollout(r.session(), r.turn(r.user(f"ab {text} cd"), r.assistant("nothing"))))

    assert [hit[0] for hit in searched(home, text)] == [thread(1)]


# --- of which session ----------------------------------------------------------------------------


def test_newest_session_comes_first_and_options_filter_sessions(home: Home) -> None:
    other = "/home/ana/other"
    home.put(r.rollout(r.session(thread=thread(2), cwd=other), r.turn(r.user("sesame 2"))), 2)
    home.put(r.rollout(r.session(), WORK, NEXT))
    home.put(r.rollout(r.session(thread=thread(3)), r.turn(r.user("sesame 3"))), 3, archived=True)

    def ids(*options: str) -> list[str]:
        return list(dict.fromkeys(hit["sessionId"] for hit in found(home, "sesame", *options)))

    assert ids() == [thread(1), thread(2)]
    assert ids("--cwd", other) == [thread(2)]
    assert ids("--archived") == [thread(3)]
    assert ids("--limit", "1") == [thread(1)]


def test_limit_of_each_session_omits_and_counts_hits(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, NEXT))
    home.put(r.rollout(r.session(thread=thread(2)), r.turn(r.user("sesame 2"))), 2)
    with Peer(home.root) as peer:
        peer.start()

        def counts(**options: int) -> list[tuple[int, int]]:
            found = peer.call("checkpoints/searchSessions", {"text": "sesame", **options})
            return [(each["count"], len(each["hits"])) for each in found["items"]]

        assert counts() == [(4, 4), (1, 1)]
        assert counts(perSession=3) == [(4, 3), (1, 1)]
        assert counts(perSession=3, limit=4) == [(4, 3), (1, 1)]
        assert counts(perSession=3, limit=3) == [(4, 3)]
        assert counts(limit=2) == [(4, 2)]
        peer.stop()
    text = home.here("search", "sesame", "--per-session", "3").stdout.decode()
    assert text.splitlines()[4] == "  1 more"


def test_lines_copied_by_a_fork_are_hits_of_their_source_alone(home: Home) -> None:
    source = r.rollout(r.session("legacy"), WORK)
    own = r.rollout(
        r.session("legacy", thread=thread(2), forked_from_id=thread(1)),
        r.several(r.raw(source), NEXT),
    )
    home.put(source)
    home.put(own, 2)

    hits = sorted(hit["sessionId"] for hit in found(home, "sesame"))
    assert hits == [thread(1)] * 3 + [thread(2)]
    home.path().unlink()
    assert [hit["sessionId"] for hit in found(home, "sesame")] == [thread(2)] * 4


def test_lines_of_a_base_are_its_hits_and_older_segments_belong_to_their_session(
    home: Home,
) -> None:
    base = r.rollout(r.session(), WORK)
    home.put(base)
    cut = r.based_on(thread(1), base.count(b"\n"), len(base))
    own = r.turn(r.user("My sesame."), name="t2")
    home.put(r.rollout(r.session(thread=thread(2), history_base=cut), own), 2)
    home.put(r.rollout(r.session(history_base=cut), own), segment=9)

    hits = [(hit["sessionId"], hit["turn"]) for hit in found(home, "sesame")]
    assert sorted(hits) == [(thread(1), 1)] * 3 + [(thread(1), 2), (thread(2), 2)]

    home.path(segment=9).unlink()
    home.path(archived=True).parent.mkdir()
    home.path().rename(home.path(archived=True))
    hits = [(hit["sessionId"], hit["turn"]) for hit in found(home, "sesame")]
    assert hits == [(thread(2), 2)] + [(thread(2), 1)] * 3


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_text_carried_by_a_branch_or_compaction_is_a_hit_of_the_source_alone(
    home: Home, form: Literal["paginated", "legacy"]
) -> None:
    home.put(r.rollout(r.session(form), WORK, NEXT))
    alone = found(home, "sesame")
    marker = home.json("mark", thread(1), "--label", "here", "--turn", "1")["checkpointId"]
    for mode in ("soft", "hard"):
        home.json("restore", thread(1), marker, "--mode", mode, "--digest-tokens", "800")
    home.json("compact", thread(1), "--force")

    assert len(home.json("sessions")) == 4
    assert found(home, "sesame") == alone


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_single_session_is_searched_with_its_carried_text(
    home: Home, form: Literal["paginated", "legacy"]
) -> None:
    home.put(r.rollout(r.session(form), WORK, NEXT))
    whole = searched(home, "sesame")
    home.put(r.rollout(r.session(form, thread=thread(2)), r.turn(r.user("A sesame."))), 2)
    marker = home.json("mark", thread(1), "--label", "here", "--turn", "1")["checkpointId"]
    branch = home.json("restore", thread(1), marker, "--mode", "soft")["sessionId"]
    own = searched(home, "sesame", session_id=branch, carried=False)
    assert own == [hit for hit in searched(home, "sesame") if hit[0] == branch] == []
    home.json("archive", branch)

    assert searched(home, "sesame", session_id=thread(1)) == whole
    hits = searched(home, "sesame", session_id=branch)
    assert {each for each, *_ in hits} == {branch}
    assert [line for *_, line in hits] == [line for _, turn, _, line in whole if turn == 1]
    with pytest.raises(Refusal, match="session"):
        searched(home, "sesame", session_id=thread(9))


def test_compressed_growing_and_damaged_files_are_searched(home: Home) -> None:
    home.put(zstd.compress(r.rollout(r.session(), WORK)), form=".jsonl.zst")
    whole = r.rollout(r.session(thread=thread(2)), r.turn(r.user("a sesame")))
    home.put(whole + b'{"timestamp":"sesame' + b"\0" * 70_000, 2)
    home.put(b"\xff sesame", 3)

    assert {hit["sessionId"] for hit in found(home, "sesame")} == {thread(1), thread(2)}


def test_rolled_back_turn_has_no_number(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, r.rollback(1), NEXT))

    assert [hit["turn"] for hit in found(home, "sesame")] == [1, None, None, None]


# --- laws ----------------------------------------------------------------------------------------

_TEXTS = st.text(
    st.sampled_from([*"ab AB\"\\/é日🐪%_!\t\n'{}0u", "\x7f", "\u2028", "\x00"]), max_size=24
)


def escaped(data: bytes, *, ascii_only: bool) -> bytes:
    """Write each line of a file as another writer of JSON would."""
    if not ascii_only:
        return data
    values = map(json.loads, data.splitlines())
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in values)


@given(texts=st.lists(_TEXTS, max_size=6), needle=_TEXTS, ascii_only=st.booleans())
@example(texts=['say "hi"'], needle='"HI', ascii_only=False)
@example(texts=["été"], needle="é", ascii_only=True)
def test_line_is_a_candidate_by_bytes_whenever_its_decoded_text_matches(
    texts: list[str], needle: str, ascii_only: bool
) -> None:
    if not one_line(needle) or "\n" in needle:
        return
    wanted = Needle.of(needle)
    assistant = (r.call("x", {"deep": text}, "c") for text in texts)
    data = r.rollout(r.session(), r.turn(*map(r.assistant, texts), *assistant))
    for line in escaped(data, ascii_only=ascii_only).splitlines():
        payload = json.loads(line)["payload"]
        said = [part["text"] for part in payload.get("content", []) if "text" in part]
        said += [json.loads(payload["arguments"])["deep"]] if "arguments" in payload else []
        if any(wanted.find(each) >= 0 for each in said):
            assert wanted.may_hit(line)
            probe = ByteSearch(wanted.pieces, folded=wanted.folded)
            chunks = [line[begin : begin + 7] for begin in range(0, len(line), 7)]
            assert any(map(probe.found, chunks))
            probe.close()


def test_text_inside_an_image_is_not_a_hit(home: Home) -> None:
    home.put(r.rollout(r.session(), r.turn(r.user("Look.", images=1), r.assistant("An aaaa."))))

    assert lines(found(home, "aaaa")) == [(1, "assistant", "An aaaa.")]


@pytest.mark.parametrize("length", [10, 5_000, 300_000])
@pytest.mark.parametrize("word", ["sesame", "Sesame"])
def test_image_is_skipped_and_the_text_around_it_is_found(length: int, word: str) -> None:
    image = b'{"image_url":"data:image/png;base64,%b"}' % (b"A" * length)
    escaped = image.replace(b'"', rb"\"")
    for data, is_there in (
        (image, False),
        (image.replace(b"A", word.encode()), length < CHUNK),  # one that fits is not worth it
        (word.encode() + image, True),
        (image + word.encode(), True),
        (image + image[:20] + word.encode() + image, True),
        (escaped.replace(b"A", word.encode()), True),
    ):
        probe = ByteSearch((word.encode(),), folded=word.islower())
        chunks = [data[begin : begin + CHUNK] for begin in range(0, len(data), CHUNK)]
        assert any(map(probe.found, chunks)) is is_there
        probe.close()


@given(texts=st.lists(_TEXTS, max_size=5), needle=_TEXTS, ascii_only=st.booleans())
def test_line_is_a_hit_exactly_if_its_decoded_text_matches(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], needle: str, ascii_only: bool
) -> None:
    if not one_line(needle) or "\n" in needle:
        return
    home = Home(tmp_path_factory.mktemp("law"))
    data = r.rollout(r.session(), r.turn(r.user("…"), *map(r.assistant, texts)))
    home.put(escaped(data, ascii_only=ascii_only))
    lower = needle if any(each.isupper() for each in needle) else None

    def holds(line: str) -> bool:
        folded = "".join(each.lower() if each.isascii() else each for each in line)
        return needle in (line if lower else folded)

    expected = [line for text in texts if text.strip() for line in text.split("\n") if holds(line)]
    assert len(searched(home, needle)) == len(expected)


@given(st.permutations([WORK, NEXT, r.rollback(1), r.compacted("sesame"), r.tokens(5)]))
def test_skipping_lines_changes_no_turn_and_no_number(steps: list[r.Step]) -> None:
    for form in ("paginated", "legacy", "bare"):
        data = r.rollout(r.session(form), *steps)
        whole, quick = Replay(), Replay()
        quick.passes_over = passing_over(lambda _line: False)
        for replay in (whole, quick):
            assert replay.feed(data) == len(data)
        assert (quick.seq, quick.scale.lines) == (whole.seq, whole.scale.lines)
        turns = [
            [(turn.turn_id, turn.opened, turn.rolled_back) for turn in each.state.turns.turns]
            for each in (quick, whole)
        ]
        assert turns[0] == turns[1]


# --- how they come -------------------------------------------------------------------------------


def twelve(home: Home, lines: int = 60) -> None:
    """Put sessions, usually of some megabytes, each with one hit at its end."""
    noise = r.several(*[r.assistant("nothing of it here " * 2000)] * lines)
    for number in range(1, 13):
        steps = r.turn(r.user(f"Say {number}."), noise, r.assistant(f"sesame {number}"))
        home.put(r.rollout(r.session(thread=thread(number)), steps), number)


def test_command_prints_hits_before_the_search_ends(home: Home) -> None:
    twelve(home)
    home.json("sessions")
    with home.start("search", "sesame", "--json") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"[\n"
        first = process.stdout.readline()
        assert json.loads(first.rstrip(b",\n"))["line"] == "sesame 1"
        assert process.poll() is None
        assert len(json.loads(b"[" + first + process.stdout.read())) == 12
    assert process.returncode == 0


def test_ctrl_c_stops_a_search_with_the_usual_code(home: Home) -> None:
    twelve(home)
    home.json("sessions")
    process = home.start("search", "nothing")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT)
    assert (process.returncode, errors) == (130, b"")


def test_hits_are_grouped_by_session_for_people(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, NEXT))
    done = home.here("search", "sesame", "--limit", "2").stdout.decode().splitlines()

    assert done[0].startswith("2026-11-20T10:00:21.000Z  shop  ")
    assert done[0].endswith("  Mend the sesame door.")
    assert done[1].startswith("  t2 #")
    assert done[1].endswith("  command  python cave.py sesame")
    assert done[3:] == ["  2 more"]
    assert b"Nothing found." in home.here("search", "frankincense").stderr
    assert b"Nothing found." in home.here("recall", thread(1), "--query", "frankincense").stderr


def test_words_without_quotes_are_one_text(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK, NEXT))
    assert home.here("search", "the", "sesame", "door").stdout.count(b"the sesame door") >= 1
    nothing = home.here("search", "door", "sesame").stderr
    assert b"Nothing found. The words are searched as one text." in nothing


def test_client_gets_hits_in_parts_and_an_answer_without_them(home: Home) -> None:
    twelve(home, lines=1)
    with Peer(home.root) as peer:
        peer.start()
        params = {"text": "sesame", "partialResultToken": "p", "limit": 11}
        number = peer.ask("checkpoints/search", params)
        result = peer.answer(number)["result"]
        parts = [peer.heard("$/progress") for _ in range(11)]
        assert result == {"items": [], "more": True}
        assert {part["token"] for part in parts} == {"p"}
        got = [each["line"] for part in parts for each in part["value"]["items"]]
        assert got == [f"sesame {number}" for number in range(1, 12)]
        whole = peer.call("checkpoints/search", {"text": "sesame"})
        assert [each["line"] for each in whole["items"]] == [*got, "sesame 12"]
        assert whole["more"] is False
        peer.stop()


def test_search_blocks_no_other_request_and_can_be_cancelled(home: Home) -> None:
    twelve(home)
    with Peer(home.root) as peer:
        peer.start({"settings": {"followedSessions": 0}})
        peer.call("checkpoints/sessions")
        number = peer.ask("checkpoints/search", {"text": "nothing", "partialResultToken": 1})
        peer.heard("$/progress")
        assert peer.call("checkpoints/marks", {"sessionId": thread(1)})["items"] == []
        peer.notify("$/cancelRequest", {"id": number})
        assert peer.answer(number)["error"]["code"] == -32_800
        peer.stop()


def test_invalid_kind_or_limit_is_refused(home: Home) -> None:
    home.put(r.rollout(r.session(), WORK))
    with Peer(home.root) as peer:
        peer.start()
        for method, wrong in (
            ("search", {"kind": "secret"}),
            ("search", {"limit": 0}),
            ("search", {"text": ""}),
            ("searchSessions", {"kinds": ["file", "user"]}),
            ("searchSessions", {"perSession": 0}),
        ):
            error = peer.error(f"checkpoints/{method}", {"text": "a", **wrong})
            assert error["data"]["code"] == "invalid_payload"
        peer.stop()
