"""One description of a page: terminal and editor say the same words, in the same order."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.sections.model import COMMANDS, SETTINGS
from homes import Home, thread
from peer import Peer

Json = dict[str, Any]

HOSTILE = "\x1b[2Jsee [this](command:x) <b>bold</b> `codex-checkpoints archive x` javascript:x"
KINDS = ("losses", "digest", "checkpoint", "record", "compaction", "restore", "import")
WITHOUT_A_SESSION = ("doctor", "connect", "disconnect")


@pytest.fixture
def home(home: Home) -> Home:
    """A session that was compacted by us, restored from a marker, and compacted by Codex."""
    (home.user / "shop").mkdir()
    (home.user / "shop/a.py").write_text("a = 1\n")
    home.put(
        r.rollout(
            r.session(thread=thread(1), cwd=str(home.user / "shop")),
            r.turn(
                r.turn_context(),
                r.user(f"Fix the till. {HOSTILE}"),
                r.plan(("Read it", True), ("Write the test", False)),
                r.shell("cat a.py", "a = 1\n", reads=["a.py"]),
                r.patch(update="a.py"),
                r.shell("pytest -q", "1 failed", exit_code=1, status="failed"),
                r.assistant("The test fails."),
            ),
            r.compacted("m", []),
            r.turn(r.user("Again"), r.assistant("Done.")),
        )
    )
    return home


@pytest.fixture
def named(home: Home) -> dict[str, Json]:
    """The params of each kind of page, for which everything is there."""
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "1")["checkpointId"]
    restored = home.json("restore", thread(1), marker, "--mode", "hard")["operationId"]
    compaction = home.json("compact", thread(1), "--force")["compactionId"]
    pack = str(home.user / "shop.pack.json")
    home.json("export", thread(1), pack)
    session = {"sessionId": thread(1)}
    return {
        **dict.fromkeys(("losses", "digest", "checkpoint"), session),
        **{kind: {} for kind in WITHOUT_A_SESSION},
        "record": {**session, "name": "t1"},
        "compaction": {"name": compaction},
        "restore": {"name": restored},
        "import": {"name": pack, "folder": str(home.user / "shop")},
    }


@pytest.fixture
def peer(home: Home, named: dict[str, Json]) -> Iterator[Peer]:  # noqa: ARG001 - made before
    with Peer(home.root, env={"PATH": "", "HOME": str(home.user)}) as peer:
        peer.start()
        yield peer


def page(peer: Peer, kind: str, params: Json) -> Json:
    return peer.call("checkpoints/page", {"kind": kind, **params})


def parts(page: Json) -> Iterator[Json]:
    """Yield all parts of a page in their order."""
    for line in page["about"]:
        yield from line["parts"]
    for section in page["sections"]:
        for line in section["sentences"]:
            yield from line["parts"]
        for row in section["table"]["rows"] if section["table"] else ():
            yield from row
        for row in section["rows"]:
            yield from row["value"]["parts"]


def quoted(page: Json) -> Iterator[Json]:
    """Yield the parts of the sections that quote a text for a model."""
    for section in page["sections"]:
        for line in section["sentences"]:
            yield from (part for part in line["parts"] if part["text"] != "none")
        for row in section["table"]["rows"] if section["table"] else ():
            yield row[-1]


def headings(page: Json) -> Iterator[str]:
    for section in page["sections"]:
        yield section["title"]
        yield from section["table"]["head"] if section["table"] else ()
        yield from (row["label"] for row in section["rows"])


@pytest.mark.parametrize("kind", [*KINDS, *WITHOUT_A_SESSION])
def test_text_of_a_page_has_every_word_of_its_sections_in_order(
    peer: Peer, named: dict[str, Json], kind: str
):
    found = page(peer, kind, named[kind])

    # A model reads the texts of these two, which have its own headings and marks.
    for_models = kind in {"digest", "checkpoint"}
    place = 0
    for part in quoted(found) if for_models else parts(found):
        words = part["text"].strip()
        assert "\x1b" not in words
        at = found["text"].find(words, place)
        assert at >= 0, (words, found["text"][place:])
        place = at
    assert for_models or all(each in found["text"] for each in headings(found))
    assert all((section["text"] or "") in found["text"] for section in found["sections"])


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("losses", ["losses", thread(1)]),
        ("digest", ["digest", thread(1)]),
        ("checkpoint", ["view", thread(1)]),
        ("record", ["recall", thread(1), "--ref", "t1"]),
        ("doctor", ["doctor"]),
    ],
)
def test_page_has_the_text_that_the_terminal_prints(
    home: Home, peer: Peer, named: dict[str, Json], kind: str, command: list[str]
):
    found = page(peer, kind, named[kind])

    assert home.run(*command, env={"PATH": ""}).stdout.decode() == found["text"]


def test_terminal_prints_the_page_of_an_import_before_it(
    home: Home, peer: Peer, named: dict[str, Json]
):
    found = page(peer, "import", named["import"])
    pack, folder = named["import"]["name"], named["import"]["folder"]
    shown = home.run("import", pack, "--cwd", folder, "--dry-run").stdout.decode()

    assert shown == found["text"]
    (about, text) = found["sections"]
    assert text["text"] in shown
    assert "Write the test" in text["text"]
    assert [row["label"] for row in about["rows"]][:3] == ["Name", "Made from session", "Contents"]


def test_terminal_prints_the_page_of_a_restore_and_the_next_command(
    home: Home, peer: Peer, named: dict[str, Json]
):
    found = page(peer, "restore", named["restore"])
    shown = home.run("restore-details", named["restore"]["name"]).stdout.decode()

    assert shown.startswith(found["text"])
    assert shown.removeprefix(found["text"]).startswith("\n→ codex resume ")


@pytest.mark.parametrize("kind", [*KINDS, *WITHOUT_A_SESSION])
def test_link_names_its_target_and_a_request_makes_none(
    peer: Peer, named: dict[str, Json], kind: str
):
    sessions = {each["sessionId"] for each in peer.call("checkpoints/sessions", {})["items"]}
    for part in parts(page(peer, kind, named[kind])):
        link = part["link"]
        if link is None:
            continue
        names = {
            "session": sessions,
            "command": {*COMMANDS},
            "setting": {*SETTINGS.values()},
            "file": {"a.py"},
            "turn": {"t1", "1", "t2", "2"},
        }.get(link["kind"])
        if names is None:
            assert link["kind"] == "record"
            assert link["name"].removeprefix("#").isalnum()
        else:
            assert link["name"] in names, link


def test_page_names_the_sessions_that_change_it(peer: Peer, named: dict[str, Json]):
    for kind in ("losses", "digest", "checkpoint", "compaction", "restore"):
        assert thread(1) in page(peer, kind, named[kind])["sessionIds"], kind
    assert page(peer, "record", named["record"])["sessionIds"] == []


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"kind": "other"}, "must be one of connect, disconnect, losses"),
        ({"kind": "losses"}, "needed for the kind losses @ params.sessionId"),
        ({"kind": "restore"}, "needed for the kind restore @ params.name"),
        ({"kind": "import"}, "needed for the kind import @ params.name"),
    ],
)
def test_page_without_its_subject_is_refused(peer: Peer, params: Json, problem: str):
    error = peer.error("checkpoints/page", params)

    assert error["data"]["code"] == "invalid_payload"
    assert error["data"]["facts"]["problems"][0].startswith(problem)


def test_unknown_losses_are_counted_with_their_reason(home: Home):
    sealed = r.compacted("", [{"type": "compaction", "encrypted_content": "gAAA"}])
    work = (r.user("Fix it"), r.plan(("Test it", False)), r.patch(update="a.py"))
    home.put(r.rollout(r.session(thread=thread(2)), r.turn(*work, sealed)), 2)
    with Peer(home.root) as peer:
        peer.start()
        (section,) = page(peer, "losses", {"sessionId": thread(2)})["sections"]

    summary = "".join(part["text"] for part in section["sentences"][-1]["parts"])
    assert summary == "3 unknown: this part is encrypted by the provider."
    assert {row[0]["state"] for row in section["table"]["rows"]} == {"unknown"}


def test_command_in_a_remedy_is_a_link_and_one_in_a_path_is_not(home: Home, peer: Peer):
    odd = home.root / "sessions/2026/11/20/`codex-checkpoints archive x`.jsonl"
    odd.parent.mkdir(parents=True, exist_ok=True)
    odd.write_bytes(home.path().read_bytes())
    (finding,) = [
        section
        for section in page(peer, "doctor", {})["sections"]
        if any(row["value"]["parts"][0]["text"] == str(odd) for row in section["rows"])
    ]

    remedy, where, *_ = finding["rows"]
    links = [part["link"] for part in remedy["value"]["parts"] if part["link"]]
    assert [(each["kind"], each["name"]) for each in links] == [("command", "view")]
    assert [part["link"] for part in where["value"]["parts"]] == [None]


def test_page_is_the_same_for_the_same_session(peer: Peer, named: dict[str, Json]):
    first, second = (json.dumps(page(peer, "losses", named["losses"])) for _ in range(2))

    assert first == second
