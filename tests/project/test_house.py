"""The house itself: the floors hold, names are chosen, lists and versions agree."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import orjson
import pytest

import codex_checkpoints

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "server" / "codex_checkpoints"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# A module named after what it contains in general will soon contain everything.
SAYS_NOTHING = {"utils", "helpers", "common", "manager", "handler", "base", "data", "process"}
# What neither an import contract nor core/ruff.toml can see: these are never imported.
REACHES_OUT = {"exec", "eval", "input", "open", "print"}
DIFFERS_FROM_RUN_TO_RUN = {"hash", "id"}


def test_import_contracts_hold() -> None:
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert lint is not None, "import-linter is not installed beside this interpreter"

    run = subprocess.run(
        [lint, "--no-logo", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server"), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr


def within_the_package(path: Path) -> str:
    """Name a file as a test id."""
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("module", sorted(PACKAGE.rglob("*.py")), ids=within_the_package)
def test_module_has_a_docstring(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_bytes())), "no docstring"


@pytest.mark.parametrize("module", sorted(PACKAGE.glob("core/**/*.py")), ids=within_the_package)
def test_core_module_uses_only_pure_builtins(module: Path) -> None:
    nodes = ast.walk(ast.parse(module.read_bytes()))
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

    assert read & (REACHES_OUT | DIFFERS_FROM_RUN_TO_RUN) == set()


def test_module_names_are_meaningful() -> None:
    modules = [path for top in ("server", "tests", "bench") for path in (ROOT / top).rglob("*.py")]
    rooms = {room for path in modules for room in (path, *path.parents) if ROOT in room.parents}

    assert [room for room in rooms if {room.stem, room.stem.removesuffix("s")} & SAYS_NOTHING] == []


def test_versions_agree() -> None:
    version = PYPROJECT["project"]["version"]
    extension = ROOT / "package.json"

    assert codex_checkpoints.__version__ == version
    assert metadata.version("codex-checkpoints") == version, "installed anew? make setup"
    if extension.exists():
        assert orjson.loads(extension.read_bytes())["version"] == version


def pins(name: str) -> dict[str, str]:
    """Return the lines of a requirement list, each by the name of its package."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {line.split("==")[0]: line for line in lines if "==" in line}


def wanted(dependencies: list[str]) -> set[str]:
    """Return the names in a list of dependencies, spelt as requirement lists spell them."""
    names = (re.match(r"[\w.-]+", dependency) for dependency in dependencies)
    return {re.sub(r"[-_.]+", "-", name[0]).lower() for name in names if name}


def test_requirement_lists_hold_the_named_requirements() -> None:
    runtime, dev = pins("requirements.txt"), pins("requirements-dev.txt")

    assert wanted(PYPROJECT["project"]["dependencies"]) <= runtime.keys()
    assert wanted(PYPROJECT["project"]["optional-dependencies"]["dev"]) <= dev.keys()
    assert runtime.items() <= dev.items(), "the tests run with other versions than users get"


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirement_list_names_no_package_index(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^--(?!hash)", text, re.MULTILINE)


def test_wheel_holds_only_the_package(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    info = f"codex_checkpoints-{PYPROJECT['project']['version']}.dist-info"

    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.startswith(f"{info}/")]

    sources = [*PACKAGE.rglob("*.py"), PACKAGE / "py.typed"]
    assert set(names) == {path.relative_to(PACKAGE.parent).as_posix() for path in sources}


@pytest.fixture(scope="module")
def files_of_the_project(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """List what is, or would be, in the repository; in an unpacked archive as well."""
    # A repository of our own over this tree: the real one may be absent, or another user's.
    repository = tmp_path_factory.mktemp("house") / "repository"
    git = ["git", f"--git-dir={repository}", f"--work-tree={ROOT}"]
    subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    assert "pyproject.toml" in names
    return [ROOT / name for name in names]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (rb"(?<![A-Za-z0-9_.-])/(?:work|root)/", "a path of one machine"),
        (rb"\.\./shared", "a folder outside the repository"),
    ],
    ids=["path", "folder"],
)
def test_no_file_depends_on_its_place_on_a_machine(
    files_of_the_project: list[Path], pattern: bytes, why: str
) -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {why}"
        for path in files_of_the_project
        if path.is_file()
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1)
        if re.search(pattern, line)
    ]

    assert found == []


UNIDIOMATIC = (
    "The arrow keys go from turn to turn",
    "Of each turn the picture",
    "Budget of the",
    "It never takes more than",
    "This saves little",
    "Let Codex call Codex Checkpoints",
    "it stands in the file",
    "you said it",
    "Codex saw this output",
    "What is true, or what was decided",
    "older runs",
    "Show What Compactions Lost",
    "All that stands under",
)


def test_texts_for_people_avoid_phrases_that_no_native_speaker_writes() -> None:
    sources = [
        *PACKAGE.rglob("*.py"),
        *(ROOT / "extension" / "src").rglob("*.ts"),
        *(ROOT / "docs").glob("*.md"),
        ROOT / "package.json",
        ROOT / "README.md",
    ]
    found = [
        (path.name, phrase)
        for path in sources
        for phrase in UNIDIOMATIC
        if phrase in path.read_text(encoding="utf-8")
    ]

    assert len(sources) > 300
    assert found == []
