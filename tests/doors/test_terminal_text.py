"""Text for a terminal: whatever a record holds, nothing of it is obeyed there, nor in the log."""

import importlib
import inspect
import logging
import pkgutil
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs
import pytest

from codex_checkpoints import sections
from codex_checkpoints.codex import resume
from codex_checkpoints.doors import pages as presentation
from codex_checkpoints.doors.pages.log import LogLine
from codex_checkpoints.doors.pages.remote import remote_session_lines
from codex_checkpoints.doors.pages.search import hit_line
from codex_checkpoints.operations.remote import RemoteSessions
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.model import Page
from codex_checkpoints.sections.terminal import Screen, columns, moment
from codex_checkpoints.service.search import SearchHit

NASTY = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202etxt\u2066\u2028line\r\x08\x00\x7f"
CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
COLOURS = re.compile("\x1b\\[[0-9]+m")

Texts = Callable[..., str | list[str] | Page]


def texts() -> dict[str, Texts]:
    """Return every function that makes lines or a page of wire records."""
    modules = [
        importlib.import_module(f"{folder.__name__}.{each.name}")
        for folder in (presentation, sections)
        for each in pkgutil.iter_modules(folder.__path__)
        if each.name not in {"terminal", "log", "progress", "words", "refusals"}
    ]
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
        if hints(function)["return"] in {str, list[str], Page}
    }


def hints(function: Texts) -> dict[str, Any]:
    """Return the types of a function; its module imports the records for type checks alone."""
    module = sys.modules[function.__module__]
    scope = {**vars(module)}
    exec("\n".join(re.findall(r"(?m)^    (from .* import .*)$", inspect.getsource(module))), scope)
    return get_type_hints(function, scope)


class Told(dict[str, Any]):
    """A JSON object of whatever somebody wrote into a file: each key is there."""

    def __missing__(self, key: str) -> object:
        sides = {"change": "added", "before": Told(), "after": Told()}
        return sides.get(key, f"some {NASTY}")

    def get(self, key: str, _default: object = None) -> object:
        return self[key]


def hostile(kind: Any, *, whole: bool) -> Any:  # noqa: ANN401 - a value of any type
    """Make a value in which every text speaks to the terminal; without `whole`, of the least."""
    inside = get_args(kind)
    if get_origin(kind) is Literal:
        return f"some {NASTY}"
    if kind is bool:
        return whole
    if kind in {int, float}:
        return 3
    if NoneType in inside:
        return hostile(inside[0], whole=whole) if whole else None
    if attrs.has(kind):
        attrs.resolve_types(kind)
        fields = {each.name: hostile(each.type, whole=whole) for each in attrs.fields(kind)}
        return kind(**fields)
    if get_origin(kind) is tuple and Ellipsis not in inside:
        return tuple(hostile(each, whole=whole) for each in inside)
    if get_origin(kind) in {dict, Mapping}:
        return Told() if inside[1] is Any else {NASTY: hostile(inside[1], whole=whole)}
    if inside:
        return (hostile(inside[0], whole=whole),)
    return f"some {NASTY}"


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("name", "width"),
    [
        (name, width)
        for name, function in texts().items()
        for width in (None, 40, 120)
        if width is None
        or "screen" in inspect.signature(function).parameters
        or hints(function)["return"] is Page
    ],
)
def test_text_of_a_record_sends_no_control_sequence_to_the_terminal(
    name: str, width: int | None, whole: bool
):
    assert len(texts()) > 20
    function = texts()[name]
    kinds = hints(function)
    kinds.pop("return")
    screen = attrs.evolve(hostile(Screen, whole=whole), width=width)
    given = {
        each: screen if kind is Screen else hostile(kind, whole=whole)
        for each, kind in kinds.items()
    }

    found = function(**given)

    if isinstance(found, Page):
        found = page_lines(found, screen)
    lines = [found] if isinstance(found, str) else found
    assert CONTROLS.search(COLOURS.sub("", "\n".join(lines))) is None


@pytest.mark.parametrize(
    ("width", "when"),
    [(80, r"2026-11-\d\d \d\d:00  "), (120, r"2026-11-\d\d \d\d:00:00  ")],
)
def test_row_of_the_remote_fits_the_terminal(width: int, when: str):
    listed = hostile(RemoteSessions, whole=True)
    item = attrs.evolve(listed.items[0], updated_at="2026-11-20T10:00:00.000Z", title="word " * 40)

    row, *_ = remote_session_lines(attrs.evolve(listed, items=(item,)), Screen(width))

    assert columns(row) < width
    assert re.match(when, row)
    assert row.endswith("…")


@pytest.mark.parametrize("before", [0, 30, 60, 61, 62, 300])
@pytest.mark.parametrize("filling", ["word ", "語"])
def test_search_hit_fits_the_terminal_with_the_searched_text_in_sight(before: int, filling: str):
    line = (filling * 300)[:before] + "Sesame" + filling * 100
    hit = attrs.evolve(hostile(SearchHit, whole=True), turn=3, seq=12, kind="answer", line=line)

    shown = hit_line(hit, "sesame", Screen(80))

    assert columns(shown) < 80
    assert shown.startswith("  t3 #12  answer  ")
    assert "Sesame" in shown
    assert shown.endswith("…")
    assert hit_line(hit, "sesame", Screen()).endswith(line), "a pipe gets it whole"


def test_shell_gets_the_id_of_a_session_as_one_word():
    usual = "01a1f865-0000-7000-8000-000000000001"

    assert resume(usual) == f"codex resume {usual}"
    assert shlex.split(resume("x; touch $(y) '")) == ["codex", "resume", "x; touch $(y) '"]


def test_command_within_a_sentence_repeats_the_named_folders():
    named = Screen(codex_home="/a b")
    archive = "`codex-checkpoints archive x{}` puts it away."

    assert named.within(archive.format("")) == archive.format(" --codex-home '/a b'")
    for sentence in ("`codex-checkpoints connect --codex-home /c` connects it.", "Nothing to do."):
        assert named.within(sentence) == Screen().within(sentence) == sentence


# --- the log -------------------------------------------------------------------------------------


def lost() -> None:
    raise KeyError(f"the words {NASTY}\nof a prompt")


def logged(fail: Callable[[], None]) -> str:
    raised = None
    try:
        fail()
    except Exception:  # noqa: BLE001 - whatever it is, it is told
        raised = sys.exc_info()
    record = logging.LogRecord("ours", logging.ERROR, "", 0, "%s failed", (NASTY,), raised)
    return LogLine("%(levelname)s %(name)s %(message)s").format(record)


def test_log_of_an_exception_has_its_places_and_type_and_never_its_message():
    first, *places = logged(lost).split("\n")

    assert first.startswith("ERROR ours ")
    assert [place.rsplit(" ", 1)[1] for place in places] == ["logged", "lost", "KeyError"]
    assert f"{__file__}:" in places[1]


def test_cause_of_an_exception_precedes_it():
    def because() -> None:
        try:
            lost()
        except KeyError as error:
            raise ValueError(NASTY) from error

    def meanwhile() -> None:
        try:
            lost()
        finally:
            raise ValueError(NASTY)

    def alone() -> None:
        try:
            lost()
        except KeyError:
            raise ValueError(NASTY) from None

    for fail, types in ((because, 2), (meanwhile, 2), (alone, 1)):
        text = logged(fail)
        assert text.count("Error\n") + text.endswith("ValueError") == types
        assert "words" not in text.replace(__file__, "")
        assert CONTROLS.search(text) is None


def test_cycle_of_exceptions_ends():
    def circle() -> None:
        one, other = ValueError("one"), KeyError("other")
        one.__cause__, other.__cause__ = other, one
        raise one

    assert logged(circle).split("\n")[1:][0].strip() == "KeyError"


def test_time_is_local_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        at = "2026-11-20T10:00:03.000Z"
        assert moment(at, Screen()) == at
        assert moment(at, Screen(width=80)) == "2026-11-20 12:00:03"
        assert moment("no time", Screen(width=80)) == "no time"
    finally:
        monkeypatch.undo()
        time.tzset()
