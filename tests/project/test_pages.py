"""The pages are true: each command, setting, method, field, code and file, and real output.

What a page shows of a terminal is run again here, over the same three sessions, and compared.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

import example_home
import pages
from codex_checkpoints import wire
from codex_checkpoints.core.converters import camel
from codex_checkpoints.doors import protocol
from codex_checkpoints.doors.typescript import RECORDS
from codex_checkpoints.service.settings import Settings, read_settings
from homes import Home

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server"
PACKAGE = SERVER / "codex_checkpoints"
PAGES = {
    "README.md": ROOT / "README.md",
    "docs/cli.md": ROOT / "docs" / "cli.md",
    "docs/reference.md": ROOT / "docs" / "reference.md",
    "docs/rules.md": ROOT / "docs" / "rules.md",
    "server/README.md": SERVER / "README.md",
    "server/PROTOCOL.md": SERVER / "PROTOCOL.md",
    "tests/README.md": ROOT / "tests" / "README.md",
    "bench/README.md": ROOT / "bench" / "README.md",
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}

CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return [text for found, text in FENCE.findall(TEXTS[page]) if found == language]


def prose(page: str) -> str:
    """Return a page without its code blocks."""
    return FENCE.sub("", TEXTS[page])


def section(page: str, heading: str) -> str:
    """Return what stands under a heading, up to the next of the same depth or a lesser one."""
    depth = len(heading) - len(heading.lstrip("#"))
    _, found, rest = TEXTS[page].partition(f"\n{heading}\n")
    assert found, f"{page} has no section {heading!r}"
    return re.split(rf"^#{{1,{depth}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables in a text, without their heads."""
    lines = text.splitlines()
    tables = [n for n, line in enumerate(lines) if re.fullmatch(r"\|( ?-+ ?\|)+", line)]
    found: list[list[str]] = []
    for start in tables:
        for line in lines[start + 1 :]:
            if not line.startswith("|"):
                break
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


# --- what a terminal shows -----------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Ana's home."""
    home = Home(tmp_path)
    example_home.fill(home)
    return home


def shown_commands() -> Iterator[tuple[str, str]]:
    """Return each command of the pages for users with what the page shows it to print."""
    for block in [*blocks("README.md", "console"), *blocks("docs/cli.md", "console")]:
        for part in block.split("$ ")[1:]:
            line, _, output = part.partition("\n")
            if line.startswith("codex-checkpoints "):
                yield line, output.rstrip("\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the page shows paths of a POSIX system")
@pytest.mark.parametrize(("line", "output"), [*shown_commands()], ids=lambda text: text[:40])
def test_page_shows_the_real_output_of_a_terminal(home: Home, line: str, output: str):
    _, *arguments = shlex.split(line)

    done = home.run(*arguments, cwd=home.user / "shop")

    assert done.returncode == 0, done.stderr.decode()
    assert as_ana_sees_it(home, done.stdout.decode()) == as_ana_sees_it(home, output)


def as_ana_sees_it(home: Home, text: str) -> str:
    """Put Ana's folders in the place of ours, and take away how long ago something was."""
    text = text.replace(str(home.root), "/home/ana/.codex").replace(str(home.user), "/home/ana")
    return re.sub(r"^ *(?:\d+[mhd]|now)(?=  )", "", text.rstrip("\n"), flags=re.MULTILINE)


# --- the pages for users -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "most"), [("README.md", 150), ("server/README.md", 120), ("tests/README.md", 110)]
)
def test_first_page_is_short(page: str, most: int):
    assert len(TEXTS[page].splitlines()) <= most


def test_readme_says_why_and_compares_before_it_installs():
    before, found, _ = TEXTS["README.md"].partition("\n## Install\n")
    reason, picture, comparison = before.partition("\n![")

    assert found
    assert picture
    assert len(re.findall(r"[.]\s", reason)) >= 3
    assert "/compact" not in reason  # the reader's trouble comes first
    for other in ("`/compact`", "codex-history-viewer", "`/rewind`", "is not"):
        assert other in comparison, other
    assert len(rows(before)) >= 4


def test_page_of_commands_has_each_command_with_help_and_text():
    page = TEXTS["docs/cli.md"]
    told = re.split(r"(?m)^## `codex-checkpoints ", page)[1:]

    assert pages.cli_page(page) == page, "python tools/pages.py"
    assert [text.partition("`")[0] for text in told] == pages.commands()
    assert [text for text in told if not text.partition("<!-- end -->")[2].strip()] == []


def test_options_named_on_the_page_of_commands_exist():
    everywhere = {"--help", "--codex-home", "--state-dir", "--json"}
    for section in re.split(r"(?m)^## `codex-checkpoints ", TEXTS["docs/cli.md"])[1:]:
        name, _, text = section.partition("`\n")
        known = set(re.findall(r"--[a-z][a-z-]+", pages.printed_help(name)))
        words = CODE.findall(FENCE.sub("", text).partition("<!-- end -->")[2])
        named = {word.split()[0] for word in words if word.startswith("--")}
        assert named <= known | everywhere, name


def test_commands_of_the_first_page_can_be_parsed():
    lines = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
    lines = [line for line in lines if line.startswith("codex-checkpoints ")]

    assert len(lines) >= 4
    for line in lines:
        _, name, *arguments = shlex.split(line)
        options = {word for word in arguments if word.startswith("--")}
        assert options <= set(re.findall(r"--[a-z][a-z-]+", pages.printed_help(name))), line


def test_reference_shows_each_setting_with_its_default():
    (text,) = blocks("docs/reference.md", "toml")
    settings, problems = read_settings(text)

    assert problems == ()
    assert attrs.evolve(settings, caps_per_model={}) == Settings()
    shown = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    fields = {camel(field.name) for field in attrs.fields(Settings)}
    assert fields - {"caps", "capsPerModel", "folders"} <= shown
    assert Settings().caps.as_json().keys() <= shown
    assert settings.caps_per_model, "how to choose caps for one model"


def test_reference_names_each_setting_of_the_editor():
    manifest = orjson.loads((ROOT / "package.json").read_bytes())
    names = manifest["contributes"]["configuration"]["properties"]

    assert [name for name in names if f"`{name}`" not in TEXTS["docs/reference.md"]] == []


def test_first_page_names_targets_of_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"`make (\w+)`", TEXTS["README.md"])

    assert {"run", "test"} <= set(named) <= set(targets)


# --- the protocol --------------------------------------------------------------------------------


def test_protocol_page_has_each_field_of_each_record():
    page = TEXTS["server/PROTOCOL.md"]

    assert pages.with_tables(page) == page, "python tools/pages.py"
    assert [
        row for row in rows(page) if row[-1] in {"", "?"} and len(row) == 3 + (row[-1] == "")
    ] == []


def test_protocol_page_has_exactly_the_records_methods_and_notifications():
    page = TEXTS["server/PROTOCOL.md"]
    methods = [each.name for each in (*protocol.METHODS, *protocol.EVENTS)]

    assert sorted(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == sorted(RECORDS)
    assert re.findall(r"^## `(\S+)`$", page, re.MULTILINE) == methods


def test_protocol_page_has_exactly_the_raised_codes():
    text = section("server/PROTOCOL.md", "## Errors")
    told = {row[0].strip("`") for row in rows(text) if row[0].startswith("`")}
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    raised = {code for text in sources for code in re.findall(r'Refusal\(\s*"(\w+)"', text)}

    assert told == {*protocol.CODES, "internal"}
    assert f"code {protocol.REFUSED}" in text
    assert raised
    assert raised <= set(protocol.CODES)


@pytest.fixture(scope="module")
def captured() -> dict[str, tuple[Any, Any]]:
    """What a real server answers now."""
    return pages.captured()


@pytest.mark.skipif(sys.platform == "win32", reason="the page shows paths of a POSIX system")
@pytest.mark.parametrize("method", protocol.METHODS, ids=lambda method: method.name)
def test_example_of_a_method_is_the_real_answer(
    captured: dict[str, tuple[Any, Any]], method: protocol.Method
):
    request, answer = messages(f"## `{method.name}`")

    assert (request["params"], answer["result"]) == captured[method.name], "python tools/pages.py"


@pytest.mark.parametrize("method", protocol.METHODS, ids=lambda method: method.name)
def test_examples_of_a_method_match_its_records(method: protocol.Method):
    request, answer = messages(f"## `{method.name}`")

    assert request["method"] == method.name
    wire.structure(request["params"], method.params)
    assert resent(answer["result"], method.result) == answer["result"], "every field is always sent"


@pytest.mark.parametrize("event", protocol.EVENTS, ids=lambda event: event.name)
def test_example_of_a_notification_matches_its_record(event: protocol.Event):
    (message,) = messages(f"## `{event.name}`")

    assert message["method"] == event.name
    assert resent(message["params"], event.params) == message["params"]


def resent(value: object, cls: type[object]) -> object:
    """Read JSON as a record, and write it again."""
    return wire.unstructure(wire.structure(value, cls))


def messages(heading: str) -> list[dict[str, Any]]:
    """Return the JSON that stands under a heading."""
    text = section("server/PROTOCOL.md", heading)
    return [orjson.loads(block) for language, block in FENCE.findall(text) if language == "json"]


# --- the architecture, the tests -----------------------------------------------------------------


def named_files(page: str) -> Iterator[str]:
    """Return what looks like a file or a folder among the code words of a page."""
    for word in CODE.findall(prose(page)):
        if re.fullmatch(r"[\w./-]+\.(?:py|md|toml|json|ts|sh|txt)|[\w./-]+/", word):
            yield word


@pytest.mark.parametrize("page", ["server/README.md", "tests/README.md"])
def test_each_file_named_on_a_page_exists(page: str):
    made_at_run_time = {"checkpoint_v1.json", "config.toml", "hooks.json", "thread-writer-locks/"}
    names = set(named_files(page)) - made_at_run_time

    assert len(names) > 5
    assert sorted(name for name in names if not is_there(name)) == []


def is_there(name: str) -> bool:
    """Return whether a name leads to something from a place where a page may stand."""
    if "/" not in name:
        inside = any(any(at.rglob(name)) for at in (SERVER, ROOT / "tests"))
        return inside or (ROOT / name).exists()
    return any((at / name).exists() for at in (PACKAGE, SERVER, ROOT, ROOT / "tests"))


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("server/README.md", PACKAGE.glob("*/__init__.py")),
        ("tests/README.md", ROOT.glob("tests/*/*")),
    ],
)
def test_page_names_each_folder_of_its_part(page: str, files: Iterator[Path]):
    wanted = {f"{path.parent.name}/" for path in files if path.parent.name[0] not in "._"}

    assert len(wanted) > 3
    assert wanted - set(CODE.findall(TEXTS[page])) == set()


@pytest.mark.parametrize("page", list(PAGES))
def test_link_target_exists(page: str):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        leads_to = PAGES[page].parent / path if path else PAGES[page]
        assert leads_to.exists(), target
        assert not anchor or anchor in anchors(leads_to), target


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
