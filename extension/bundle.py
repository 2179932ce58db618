"""Put the server and its libraries into `bundled/`, for every Python and system at once.

    python extension/bundle.py           build `bundled/` and print its digest
    python extension/bundle.py --list    compile requirements-bundle.txt anew, then build

A wheel's compiled files carry interpreter and system in their names, so the wheels of all pairs
unpack into one folder, `bundled/libs`, and each Python finds its own.  Where two systems use one
name for different files, the package goes into `bundled/native/<system>` as a whole; `ONE_NAME`
says which those are.  Text with other line ends counts as the same.  Any other difference between
two pairs fails the build: it would mean that one of them gets the other's code.

uv does the installing, from a hashed list, without building anything.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = ROOT / "extension"
BUNDLED = ROOT / "bundled"
LIST = EXTENSION / "requirements-bundle.txt"

sys.dont_write_bytecode = True
sys.path.insert(0, str(EXTENSION))
import launch  # noqa: E402

PYTHONS = tuple(
    f"{launch.OLDEST[0]}.{minor}" for minor in range(launch.OLDEST[1], launch.NEWEST[1] + 1)
)
SYSTEMS: Mapping[str, str] = {
    # What uv calls it: what the launcher calls it, as `sys.platform` and `platform.machine()`.
    "x86_64-manylinux2014": "linux-x86_64",
    "aarch64-manylinux2014": "linux-aarch64",
    "x86_64-unknown-linux-musl": "linux-x86_64",
    "aarch64-unknown-linux-musl": "linux-aarch64",
    "aarch64-apple-darwin": "darwin-arm64",
    "x86_64-apple-darwin": "darwin-x86_64",
    "x86_64-pc-windows-msvc": "win32-amd64",
    "aarch64-pc-windows-msvc": "win32-arm64",
}
ONE_NAME = {
    "darwin": re.compile(r"backports/zstd/|_watchdog_fsevents\."),
}
"""Systems whose wheels for two processors hold different files of one name."""

NO_WHEEL = {"musl": "watchdog"}
"""There is none for musl, but it is pure Python on Linux: the other Linux trees bring it."""

NEW_YEAR_1980 = 315_619_200
"""A time that a zip file can hold."""

ALSO = ("exceptiongroup", "typing_extensions")
"""Left out by markers of newer Pythons, wanted by older ones."""

UNUSED = ("tzdata",)
"""Needed by nobody here: dateutil loads it for names of time zones, and times here are UTC."""

NOT_WANTED = re.compile(
    r"(^|/)__pycache__/|^bin/|^Scripts/|^\.lock$"
    r"|\.dist-info/(RECORD|WHEEL|INSTALLER|REQUESTED|top_level\.txt|entry_points\.txt|sboms/.*)$"
)
"""What installing leaves, what differs from wheel to wheel and is read by nobody."""

TEXT = re.compile(r"(\.(py|pyi|txt|md|rst|typed|json|toml|cfg)|/(METADATA|LICENSE[^/]*|AUTHORS))$")


def main() -> int:
    """Build, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="compile the list of wheels anew")
    if parser.parse_args().list:
        compile_list()
    with tempfile.TemporaryDirectory(prefix="bundle-") as folder:
        files = merged(installed(Path(folder)))
        # A bundle that is half old would be worse than none.
        shutil.rmtree(BUNDLED, ignore_errors=True)
        write(BUNDLED, {**files, **server()})
    names = sorted(path for path in BUNDLED.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in names)
    print(f"bundled {len(names)} files, {size / 1e6:.1f} MB, {len(PYTHONS) * len(SYSTEMS)} pairs")
    print(f"digest {digest(BUNDLED)}")
    return 0


def compile_list() -> None:
    """Write the hashed list of what the server needs, in the versions the tests run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = "\n".join((*project["dependencies"], *ALSO)) + "\n"
    command = [uv(), "pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
    command += [word for name in UNUSED for word in ("--no-emit-package", name)]
    command += ["--constraints", str(ROOT / "requirements.txt"), "--output-file", str(LIST), "-"]
    subprocess.run(command, input=wanted.encode(), check=True, cwd=ROOT)


def installed(folder: Path) -> Iterator[tuple[str, Path]]:
    """Install every pair beside each other; yield the system and the tree of each, in order."""
    pairs = [(python, target) for target in SYSTEMS for python in PYTHONS]
    # Without watchdog in the list: uv has no way to leave one package out of a hashed list.
    text = LIST.read_text(encoding="utf-8")
    lists = {"": folder / "all.txt"}
    lists[""].write_text(text, encoding="utf-8")
    for part, name in NO_WHEEL.items():
        lists[part] = folder / f"{part}.txt"
        lists[part].write_text(without(text, name), encoding="utf-8")

    def install(pair: tuple[str, str]) -> Path:
        python, target = pair
        tree = folder / f"{target}-{python}"
        wheels = next((lists[part] for part in lists if part and part in target), lists[""])
        command = [uv(), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        command += ["--only-binary", ":all:", "--no-compile-bytecode", "--link-mode", "copy"]
        command += ["--python", sys.executable, "--python-version", python]
        command += ["--python-platform", target, "--target", str(tree), "-r", str(wheels)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if run.returncode != 0:
            raise SystemExit(f"no bundle for Python {python} on {target}:\n{run.stderr}")
        return tree

    with ThreadPoolExecutor(4) as pool:
        for (_, target), tree in zip(pairs, pool.map(install, pairs), strict=True):
            yield target, tree


def without(text: str, name: str) -> str:
    """Return a hashed list without one package."""
    return re.sub(rf"^{name}==.*(\n    --hash=.*)+\n", "", text, flags=re.MULTILINE)


def merged(trees: Iterator[tuple[str, Path]]) -> dict[str, bytes]:
    """Return all files by their place in the bundle; end when two pairs disagree."""
    files: dict[str, bytes] = {}
    seen: dict[str, str] = {}
    for target, tree in trees:
        for path in sorted(tree.rglob("*")):
            name = path.relative_to(tree).as_posix()
            if not path.is_file() or NOT_WANTED.search(name):
                continue
            place = f"{folder_of(target, name)}/{name}"
            data = path.read_bytes()
            if TEXT.search(name):
                data = data.replace(b"\r\n", b"\n")
            if files.setdefault(place, data) != data:
                raise SystemExit(f"{name} differs between {seen[place]} and {tree.name}")
            seen.setdefault(place, tree.name)
    return files


def folder_of(target: str, name: str) -> str:
    """Return the folder of the bundle a file goes into."""
    for part, pattern in ONE_NAME.items():
        if part in target and pattern.match(name):
            return f"native/{SYSTEMS[target]}"
    return "libs"


def server() -> dict[str, bytes]:
    """Return our own code and the launcher."""
    source = ROOT / "server"
    files = {
        f"server/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in sorted(source.glob("codex_checkpoints/**/*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    return {**files, "launch.py": (EXTENSION / "launch.py").read_bytes()}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files, readable for everybody, with one time for all."""
    for name, data in sorted(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o644)
        os.utime(path, (NEW_YEAR_1980, NEW_YEAR_1980))


def digest(folder: Path) -> str:
    """Return one digest of all names and contents: two builds must give the same."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(folder).as_posix()
            whole.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n".encode())
    return whole.hexdigest()


def uv() -> str:
    """Return the uv that came with this environment, else the one on the path."""
    beside = shutil.which("uv", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("uv")
    if found is None:
        raise SystemExit("uv is missing; it comes with the development requirements")
    return found


if __name__ == "__main__":
    sys.exit(main())
