"""Digest and losses of a large session: kept in the index while all that they are made of stays."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.progress import Progress
from derived_state import reads
from homes import Home, cached_value, more, thread

OUTPUT = "o" * 30_000
SECRET = "ghp_" + "a1B2" * 9
SUMMARY = r.compacted("m", [user_message(["Mend the shop"])])

Answer = Callable[[Home], Any]


@pytest.fixture
def home(home: Home) -> Home:
    """A home with a session of more than a megabyte, in a folder with files that it knows."""
    shop = home.user / "shop"
    shop.mkdir()
    (shop / "price.py").write_text("price = 1\n")
    (shop / "copy.py").write_text("price = 1\n")
    steps = [
        r.user("Mend the shop"),
        r.shell("cat price.py", "price = 1\n", reads=["price.py"]),
        r.patch(update="price.py"),
        r.shell("cp price.py copy.py"),
        r.shell(f"TOKEN={SECRET} pytest", "1 failed", exit_code=1, status="failed"),
        *(r.shell(f"make step-{number}", OUTPUT) for number in range(40)),
    ]
    after = r.turn(r.user("Go on"), r.shell("cat price.py", "price = 1\n", reads=["price.py"]))
    home.put(r.rollout(r.session(cwd=str(shop)), r.turn(*steps, SUMMARY), after))
    return home


def digest(home: Home) -> Any:  # noqa: ANN401 - compared as a whole
    with home.house() as house:
        return Digests(house.sessions).digest(thread(1))


def losses(home: Home) -> Any:  # noqa: ANN401
    with home.house() as house:
        return losses_of(house.sessions, thread(1))


def kept(home: Home, *names: str) -> list[tuple[str, bytes]]:
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        rows = index.execute("SELECT fold, CAST(state AS BLOB) FROM states").fetchall()
    return [row for row in rows if row[0] in names]


def anew(home: Home, answer: Answer) -> object:
    """Return an answer where nothing was kept."""
    (home.state / "index.sqlite").unlink()
    return answer(home)


ANSWERS = pytest.mark.parametrize("answer", [digest, losses])


@ANSWERS
def test_unchanged_large_session_is_not_read_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, answer: Answer
):
    first = answer(home)
    counted = reads(monkeypatch)

    assert answer(home) == first
    assert sum(counted) == 0
    assert anew(home, answer) == first
    (found,) = kept(home, "whole digest", "losses")
    assert SECRET not in json.dumps(cached_value(found[1]))


def test_a_cached_digest_takes_less_than_half_of_its_json(home: Home):
    lines = [f"def step_{number}(): raise Fault{number}" for number in range(1200)]
    steps = [
        r.shell(f"cat part{at}.py", "\n".join(lines[at : at + 30]), reads=[f"part{at}.py"])
        for at in range(0, len(lines), 30)
    ]
    large = (r.shell(f"make step-{number}", OUTPUT) for number in range(40))
    home.put(r.rollout(r.session(), r.turn(r.user("Read it"), *large, *steps, SUMMARY)))

    first = digest(home)

    ((_, state),) = kept(home, "whole digest")
    assert len(json.dumps(cached_value(state))) > 2 * len(state)
    assert digest(home) == first


def gone_on(home: Home) -> None:
    steps = r.turn(r.user("More"), r.shell("make", "Error 1", exit_code=2), SUMMARY, name="t9")
    ordinal = home.path().read_bytes().count(b"\n")
    with home.path().open("ab") as file:
        file.write(more(steps, thread=thread(1), ordinal=ordinal))


def unfinished(home: Home) -> None:
    ordinal = home.path().read_bytes().count(b"\n")
    with home.path().open("ab") as file:
        file.write(more(SUMMARY, thread=thread(1), ordinal=ordinal).rstrip(b"\n"))


def written_anew(home: Home) -> None:
    data = home.path().read_bytes().replace(b"pytest", b"tox -q")
    other = home.path().with_suffix(".new")
    other.write_bytes(data)
    other.replace(home.path())


@ANSWERS
@pytest.mark.parametrize("change", [gone_on, unfinished, written_anew])
def test_cached_result_of_another_file_does_not_count(
    home: Home, answer: Answer, change: Callable[[Home], None]
):
    before = answer(home)
    change(home)

    after = answer(home)

    assert before != after == anew(home, answer)


def file_changed(home: Home) -> None:
    (home.user / "shop" / "price.py").write_text("price = 2\n")


def target_is_a_folder(home: Home) -> None:
    (home.user / "shop" / "copy.py").unlink()
    (home.user / "shop" / "copy.py").mkdir()


def pinned(home: Home) -> None:
    home.json("pin", thread(1), "--text", "Mind the prices.")


def names_ignored(home: Home) -> None:
    home.config('digestIgnore = ["price.py"]\n')


def a_smaller_budget(home: Home) -> None:
    home.config("digestTokens = 60\n")


@pytest.mark.parametrize(
    "change", [file_changed, target_is_a_folder, pinned, names_ignored, a_smaller_budget]
)
def test_cached_digest_counts_only_with_unchanged_inputs(
    home: Home, change: Callable[[Home], None]
):
    before = digest(home)
    change(home)

    after = digest(home)

    assert before != after == anew(home, digest)


def note(home: Home, payload: dict[str, object]) -> None:
    """Add a note that rests on the first message."""
    with home.house() as house:
        request = house.sessions.open(thread(1))[1].now().state.turns.turns[0].request
    assert request is not None
    file = home.user / "note.json"
    file.write_text(json.dumps(payload | {"evidence": {"source": "user", "ref": request.ref}}))
    home.json("apply", thread(1), str(file))


def test_fact_that_became_suspect_is_marked_in_the_digest(home: Home):
    shown = home.json("show", thread(1))["recentArtifacts"]
    depends = [{"uri": uri} for uri in shown if uri.endswith("price.py")]
    note(home, {"kind": "fact", "key": "price", "value": "It is one.", "dependsOn": depends})
    home.json("pin", thread(1), "--note", "price")
    assert "fact price: It is one." in digest(home).text
    file_changed(home)

    after = digest(home)

    assert "fact price (SUSPECT): It is one." in after.text
    assert after == anew(home, digest)


def test_losses_use_the_current_notes(home: Home):
    losses(home)
    note(home, {"kind": "plan", "steps": [{"id": "1", "text": "Paint it"}]})
    gone_on(home)

    found = losses(home)

    assert [step.text for step in found[-1].open_plan_steps] == ["Paint it"]
    assert found == anew(home, losses)


@ANSWERS
@pytest.mark.parametrize(
    "state", ["'{}'", """replace(CAST(state AS TEXT), '"version":', '"version":9')"""]
)
def test_damaged_or_outdated_cache_entry_is_rebuilt(home: Home, answer: Answer, state: str):
    first = answer(home)
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        query = f"UPDATE states SET state = {state} WHERE fold IN ('whole digest', 'losses')"
        assert index.execute(query).rowcount == 1
        index.commit()

    assert answer(home) == first


@pytest.mark.parametrize("command", [("digest", "--tokens", "500"), ("losses",)])
def test_nothing_is_cached_without_a_digest_budget(home: Home, command: tuple[str, ...]):
    digest(home)
    losses(home)
    home.config("hookDigestTokens = 0\ndigestTokens = 0\n")
    home.json(command[0], thread(1), *command[1:])

    assert kept(home, "digest", "whole digest", "losses") == []


@pytest.mark.parametrize("name", ["digest", "losses"])
def test_session_that_vanishes_while_read_is_not_cached(home: Home, name: str):
    path, archived = home.path(), home.path(archived=True)
    with home.house() as house:
        house.sessions.open(thread(1))
        progress, catalogue = Progress(), house.sessions.catalogue

        def goes() -> None:
            if path.exists():
                archived.parent.mkdir()
                path.rename(archived)
                catalogue.refresh_paths([str(path), str(archived)])

        progress.between_steps = goes
        with house.sessions.at(progress):
            if name == "digest":
                Digests(house.sessions).digest(thread(1))
            else:
                losses_of(house.sessions, thread(1))

    assert archived.exists()
    assert kept(home, "whole digest", "losses") == []


def test_session_with_bases_is_read_with_them(home: Home):
    size = home.path().read_bytes().count(b"\n")
    head = r.session(thread=thread(2), history_base=r.based_on(thread(1), size, 0))
    steps = [r.shell(f"make part-{number}", OUTPUT) for number in range(40)]
    home.put(r.rollout(head, r.turn(r.user("Go on"), *steps, name="own")), 2)
    with home.house() as house:
        Digests(house.sessions).digest(thread(2))
        losses_of(house.sessions, thread(2))

    assert kept(home, "whole digest", "losses") == []
