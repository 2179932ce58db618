"""The pages say what is so: each command, setting, method, field, code and file, and real output.

What a page shows of a terminal is run again here, over the same three sessions, and compared.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import orjson
import pytest

import rollouts as r
from codex_checkpoints import cli, protocol, wire
from codex_checkpoints.core.codec import camel
from codex_checkpoints.service.settings import Settings, read_settings
from homes import Home

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "server"
PACKAGE = SERVER / "codex_checkpoints"
PAGES = {
    "README.md": ROOT / "README.md",
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

LOGIN = "01a1f865-3ad7-7601-88dd-d96adef4e491"
SLOW = "01a1f1c4-90c2-7d13-9a51-0f3b7c55e2aa"
BLOG = "01a1e8e0-5b1f-7e42-b1c3-6d20a94f7788"


def a_login(cwd: Path) -> bytes:
    return r.rollout(
        r.session(thread=LOGIN, cwd=str(cwd)),
        r.turn(
            r.turn_context(),
            r.user("Add token refresh to the login flow"),
            r.plan(("Read the auth module", False), ("Write the refresh test", False)),
            r.shell("cat src/auth.py", "def login(): ...", reads=["src/auth.py"]),
            r.patch(add="tests/test_auth.py"),
            r.shell("pytest -q", "1 failed", exit_code=1, status="failed"),
            r.plan(("Read the auth module", True), ("Write the refresh test", False)),
            r.tokens(87_856),
            r.assistant("The test fails, as it should."),
        ),
    )


def a_slow_shop(cwd: Path) -> bytes:
    return r.rollout(
        r.session(thread=SLOW, cwd=str(cwd)),
        r.turn(r.turn_context(), r.user("Why is the checkout slow on Mondays?"), r.tokens(201_552)),
    )


def a_blog(cwd: Path) -> bytes:
    return r.rollout(
        r.session(thread=BLOG, cwd=str(cwd)),
        r.turn(r.user("Translate the last post"), r.shell("wc -w post.md", "2"), r.tokens(31_008)),
    )


@pytest.fixture
def ana(tmp_path: Path) -> Home:
    """Let Ana work on three things in two folders, on three days."""
    home = Home(tmp_path)
    shop, blog = home.user / "shop", home.user / "blog"
    for path, text in (
        (shop / "src/auth.py", "def login(): ...\n"),
        (shop / "tests/test_auth.py", "def test_login(): ...\n"),
        (blog / "post.md", "# Post\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for session, day, data in (
        (LOGIN, "20", a_login(shop)),
        (SLOW, "19", a_slow_shop(shop)),
        (BLOG, "17", a_blog(blog)),
    ):
        path = home.root / f"sessions/2026/11/{day}/rollout-2026-11-{day}T10-00-00-{session}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(data.replace(b"2026-11-20T", f"2026-11-{day}T".encode()))
    return home


def shown_commands() -> Iterator[tuple[str, str]]:
    """Return each command of the user's page with what the page shows it to print."""
    for block in blocks("README.md", "console"):
        for part in block.split("$ ")[1:]:
            line, _, output = part.partition("\n")
            if line.startswith("codex-checkpoints "):
                yield line, output.rstrip("\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the page shows paths of a POSIX system")
@pytest.mark.parametrize(("line", "output"), [*shown_commands()], ids=lambda text: text[:40])
def test_the_users_page_shows_what_a_terminal_shows(ana: Home, line: str, output: str):
    _, *arguments = shlex.split(line)

    done = ana.run(*arguments, cwd=ana.user / "shop")

    assert done.returncode == 0, done.stderr.decode()
    assert as_ana_sees_it(ana, done.stdout.decode()) == as_ana_sees_it(ana, output)


def as_ana_sees_it(home: Home, text: str) -> str:
    """Put Ana's folders in the place of ours, and take away how long ago something was."""
    text = text.replace(str(home.root), "/home/ana/.codex").replace(str(home.user), "/home/ana")
    return re.sub(r"^ *(?:\d+[mhd]|now)(?=  )", "", text.rstrip("\n"), flags=re.MULTILINE)


# --- the user's page -----------------------------------------------------------------------------


def printed_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        cli.main([*arguments, "--help"])
    return capsys.readouterr().out


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.findall(r"^    ([a-z-]+)(?=  |$)", printed_help(capsys), re.MULTILINE)


def test_the_users_page_has_each_command_with_each_option(capsys: pytest.CaptureFixture[str]):
    names = commands(capsys)

    assert len(names) > 5
    shown = re.findall(r"^### `codex-checkpoints ([a-z-]+)", TEXTS["README.md"], re.MULTILINE)
    assert shown == names
    everywhere = {"--help", "--codex-home", "--state-dir"}
    assert everywhere <= set(CODE.findall(TEXTS["README.md"].replace(" DIR`", "`")))
    for name in names:
        options = set(re.findall(r"--[a-z][a-z-]+", printed_help(capsys, name)))
        (text,) = re.findall(
            rf"^### `codex-checkpoints {name}[ `].*?(?=^##)",
            TEXTS["README.md"],
            re.MULTILINE | re.DOTALL,
        )
        found = set(re.findall(r"--[a-z][a-z-]+", text))
        assert found - everywhere == options - everywhere, name


def test_the_users_page_shows_each_setting_with_its_default():
    (text,) = blocks("README.md", "toml")
    settings, problems = read_settings(text)

    assert problems == ()
    assert attrs.evolve(settings, caps_per_model={}) == Settings()
    shown = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    fields = {camel(field.name) for field in attrs.fields(Settings)}
    assert fields - {"caps", "capsPerModel"} <= shown
    assert Settings().caps.as_json().keys() <= shown
    assert settings.caps_per_model, "how to choose caps for one model"


def test_the_users_page_names_each_setting_of_the_editor():
    manifest = orjson.loads((ROOT / "package.json").read_bytes())
    names = manifest["contributes"]["configuration"]["properties"]

    assert [name for name in names if f"`{name}`" not in TEXTS["README.md"]] == []


def test_the_users_page_names_targets_of_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"`make (\w+)`", TEXTS["README.md"])

    assert {"run", "test"} <= set(named) <= set(targets)


# --- the protocol --------------------------------------------------------------------------------


NAMES = {record: name for name, record in protocol.RECORDS.items()}


def records() -> dict[str, type]:
    """Return every record of the wire by name, those inside others as well."""
    tops = [cls for method in protocol.METHODS for cls in (method.params, method.result)]
    tops += [event.params for event in protocol.EVENTS] + [protocol.InitializationOptions]
    found: dict[str, type] = {}
    while tops:
        cls = tops.pop()
        if NAMES[cls] not in found:
            found[NAMES[cls]] = cls
            hints = get_type_hints(cls).values()
            tops += [part for hint in hints for part in parts(hint) if wire.is_wire_record(part)]
    return dict(sorted(found.items()))


def parts(hint: object) -> Iterator[object]:
    """Return the types that a type is made of."""
    yield hint
    for inner in get_args(hint):
        yield from parts(inner)


def in_words(hint: object) -> str:
    """Return a type as the page writes it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return " or ".join("null" if part is NoneType else in_words(part) for part in inner)
    if origin is tuple:
        return f"array of {in_words(inner[0])}"
    if origin is dict:
        values = "" if inner[1] is Any else f" of {in_words(inner[1])}"
        return f"object{values}"
    if origin is Literal:
        return in_words(str)
    if not isinstance(hint, type):
        raise TypeError(f"no words for {hint}")
    simple = {str: "string", int: "integer", bool: "boolean", Any: "any JSON value"}
    return simple.get(hint) or f"[{NAMES[hint]}](#{NAMES[hint].lower()})"


def default(field: "attrs.Attribute[Any]") -> str:
    """Return what a field of params is when it is left out, as the page writes it."""
    if field.default is attrs.NOTHING:
        return "required"
    make = getattr(field.default, "factory", None)
    value = field.default if make is None else make()
    return f"`{orjson.dumps(value).decode()}`"


@pytest.mark.parametrize(("name", "cls"), [*records().items()], ids=list(records()))
def test_the_protocol_page_has_each_field_of_each_record(name: str, cls: type):
    hints = get_type_hints(cls)
    asked = {method.params for method in protocol.METHODS} | {protocol.InitializationOptions}

    told = [row[:-1] for row in rows(section("server/PROTOCOL.md", f"### {name}"))]

    assert told == [
        [f"`{camel(field.name)}`", in_words(hints[field.name])]
        + ([default(field)] if cls in asked else [])
        for field in attrs.fields(cls)
    ]


def test_a_record_is_named_in_the_protocol_when_it_goes_over_the_wire():
    assert records() == dict(sorted(protocol.RECORDS.items()))


def test_the_protocol_page_has_each_record_and_no_other():
    told = re.findall(r"^### (\w+)$", TEXTS["server/PROTOCOL.md"], re.MULTILINE)

    assert sorted(told) == list(records())


def test_the_protocol_page_has_each_method_and_notification_and_no_other():
    told = re.findall(r"^## `(\S+)`$", TEXTS["server/PROTOCOL.md"], re.MULTILINE)

    assert told == [each.name for each in (*protocol.METHODS, *protocol.EVENTS)]


def test_the_protocol_page_has_each_code_and_no_other():
    text = section("server/PROTOCOL.md", "## Errors")
    told = [row[0].strip("`") for row in rows(text) if row[0].startswith("`")]

    assert set(protocol.CODES) <= set(told)
    assert set(told) - set(protocol.CODES) == {"internal"}
    assert f"code {protocol.REFUSED}" in text


def test_a_refusal_has_a_code_of_the_protocol():
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    raised = {code for text in sources for code in re.findall(r'Refusal\(\s*"(\w+)"', text)}

    assert raised
    assert raised <= set(protocol.CODES)


@pytest.mark.parametrize("method", protocol.METHODS, ids=lambda method: method.name)
def test_the_examples_of_a_method_fit_its_records(method: protocol.Method):
    request, answer = messages(f"## `{method.name}`")

    assert request["method"] == method.name
    wire.structure(request["params"], method.params)
    assert resent(answer["result"], method.result) == answer["result"], "every field is always sent"


@pytest.mark.parametrize("event", protocol.EVENTS, ids=lambda event: event.name)
def test_the_example_of_a_notification_fits_its_record(event: protocol.Event):
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
def test_each_file_that_a_page_names_is_there(page: str):
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


def test_the_architecture_page_names_each_room():
    rooms = [path for path in PACKAGE.iterdir() if path.suffix == ".py" and path.stem[0] != "_"]
    folders = [path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    wanted = {path.relative_to(PACKAGE).as_posix() for path in rooms}
    wanted |= {f"{path.relative_to(PACKAGE).as_posix()}/" for path in folders}

    assert wanted - set(CODE.findall(TEXTS["server/README.md"])) == set()


def test_the_tests_page_names_each_folder_of_the_tests():
    folders = [path for path in (ROOT / "tests").iterdir() if path.is_dir()]
    wanted = {f"{path.name}/" for path in folders if path.name[0] not in "._"}

    assert wanted - set(CODE.findall(TEXTS["tests/README.md"])) == set()


@pytest.mark.parametrize("page", list(PAGES))
def test_a_link_leads_somewhere(page: str):
    anchors = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", TEXTS[page], re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if path:
            assert (PAGES[page].parent / path).exists(), target
        elif "://" not in target:
            assert anchor in anchors, target
