"""A model that continues our session has the digest, and looks up the records that it quotes."""

import json
import re
from typing import Any

import pytest

from codex.codex_cli import AppServer
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, Usage, call, say, shell, text_of
from codex.test_memory import Plain, with_memory

pytestmark = pytest.mark.codex

TASK = "Why does the division lie?"
FOUND = "It rounds down, since core.py divides with `//`."
PRINTED = "rounding_of_div=downwards"
WORK = " I read every part of it, and that is all I saw." * 600


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_a_resumed_model_recalls_the_sources_record_by_an_anchor_of_the_digest(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(
        Answer(shell("cat calc/core.py notes.txt", "call_look")),
        Answer(say(FOUND + WORK), usage=Usage(input=150_000)),
    )
    with_memory(home)
    (home.project / "notes.txt").write_text(f"{PRINTED}\n", encoding="utf-8")
    with AppServer(home) as server:
        source = server.start(legacy=legacy)
        server.turn(source, TASK)
    made = json.loads(run(home, "compact", source, "--json"))["sessionId"]
    lines = json.loads(run(home, "digest", made, "--json"))["lines"]
    answer, output = (anchor_of(lines, text) for text in (FOUND, PRINTED))
    model.add(
        Answer(call("memory_recall", {"ref": answer}, "call_1", namespace="mcp__memory")),
        Answer(call("memory_recall", {"ref": output}, "call_2", namespace="mcp__memory")),
        Answer(call("memory_recall", {"query": "DEF DIV"}, "call_3", namespace="mcp__memory")),
        Answer(call("memory_recall", {"query": "def div"}, "call_4", namespace="mcp__memory")),
        Answer(call("memory_recall", {"ref": "#99999"}, "call_5", namespace="mcp__memory")),
        Answer(say("Now I know.")),
    )

    home.exec("Go on.", resume=made)

    (given,) = (
        text_of(item)
        for item in model.turns[-1].input
        if item.get("role") == "user" and "[SESSION_DIGEST v1]" in text_of(item)
    )
    digest = given.partition("[SESSION_DIGEST v1]")[2]
    assert re.search(rf"(?m)^- t1 {answer} answered: {re.escape(FOUND)}", digest)
    assert re.search(rf"(?m)^- {output} out: .*{PRINTED}$", digest)
    said, printed, none, found, unknown = Plain.told(model.turns[-1], 5)
    assert (said["kind"], said["total"]) == ("assistant", len(FOUND + WORK))
    assert said["text"] == (FOUND + WORK)[:8000]
    assert printed["kind"] == "output"
    whole = (home.project / "calc/core.py").read_text(encoding="utf-8")
    assert whole.strip() in printed["text"]
    assert none["hits"] == []
    assert [(hit["ref"], hit["line"]) for hit in found["hits"]] == [(output, "def div(a, b):")]
    assert (unknown["accepted"], unknown["code"]) == (False, "unknown_ref")
    record = json.loads(run(home, "recall", made, "--ref", answer, "--json"))
    assert (record["sessionId"], record["turn"]) == (source, None)
    assert model.unscripted == []


def anchor_of(lines: list[Any], text: str) -> str:
    """Return the anchor of the first line that quotes a text."""
    return next(line["ref"] for line in lines if text in line["text"])
