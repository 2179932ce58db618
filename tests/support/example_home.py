"""The home of Ana, who worked on three things in two folders: the examples of the pages.

`examples` asks a server over it one example of each method, as PROTOCOL.md shows them.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import rollouts as r
from codex_checkpoints.storage.remote.chosen import ChosenRemote, choose_remote
from homes import Home
from peer import Peer

Json: TypeAlias = Any

LOGIN = "01a1f865-3ad7-7601-88dd-d96adef4e491"
SLOW = "01a1f1c4-90c2-7d13-9a51-0f3b7c55e2aa"
BLOG = "01a1e8e0-5b1f-7e42-b1c3-6d20a94f7788"
ORDERS = "01a1e3b9-7c40-7a85-93f2-2b6e1d0c4f15"


def a_login(cwd: str) -> bytes:
    """Plan, read, write, run a test that fails."""
    return r.rollout(
        r.session(thread=LOGIN, cwd=cwd),
        r.turn(
            r.turn_context(),
            r.user("Add token refresh to the login flow"),
            r.plan(("Read the auth module", False), ("Write the refresh test", False)),
            r.shell("cat src/auth.py", "def login(): ...\n", reads=["src/auth.py"]),
            r.patch(add="tests/test_auth.py", content="def test_login(): ...\n"),
            r.shell("pytest -q", "1 failed", exit_code=1, status="failed"),
            r.plan(("Read the auth module", True), ("Write the refresh test", False)),
            r.tokens(87_856),
            r.assistant("The test fails, as it should."),
        ),
    )


def a_slow_shop(cwd: str) -> bytes:
    """Ask in a session that is nearly full."""
    return r.rollout(
        r.session(thread=SLOW, cwd=cwd),
        r.turn(r.turn_context(), r.user("Why is the checkout slow on Mondays?"), r.tokens(201_552)),
    )


def a_blog(cwd: str) -> bytes:
    """Run one command."""
    return r.rollout(
        r.session(thread=BLOG, cwd=cwd),
        r.turn(r.user("Translate the last post"), r.shell("wc -w post.md", "2"), r.tokens(31_008)),
    )


def an_order(cwd: str) -> bytes:
    """Work, be compacted by Codex, read the same again, and go on."""
    read = r.shell("cat orders.py", "def total(): ...\n" * 40, reads=["orders.py"])
    summary: list[Json] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in ("Round the totals", "A summary: totals are rounded now.")
    ]
    return r.rollout(
        r.session(thread=ORDERS, cwd=cwd),
        r.turn(
            r.turn_context(),
            r.user("Round the totals"),
            r.plan(("Round", True), ("Test it", False)),
            read,
            r.shell("pytest -q", "1 failed", exit_code=1, status="failed"),
            r.tokens(61_300),
        ),
        r.compacted("A summary: totals are rounded now.", summary),
        r.turn(
            r.turn_context(),
            r.user("Now test it"),
            read,
            r.patch(delete="old_orders.py"),
            r.tokens(12_040),
        ),
    )


def fill(home: Home, *, orders: bool = False) -> None:
    """Put her folders and sessions there, on request also the one that Codex has compacted."""
    shop, blog = home.user / "shop", home.user / "blog"
    for path, text in (
        (shop / "src/auth.py", "def login(): ...\n"),
        (shop / "tests/test_auth.py", "def test_login(): ...\n"),
        (shop / "orders.py", "def total(): ...\n" * 40),
        (blog / "post.md", "# Post\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    sessions = [
        (LOGIN, "20", a_login(str(shop))),
        (SLOW, "19", a_slow_shop(str(shop))),
        (BLOG, "17", a_blog(str(blog))),
        *([(ORDERS, "16", an_order(str(shop)))] if orders else []),
    ]
    for session, day, data in sessions:
        path = home.root / f"sessions/2026/11/{day}/rollout-2026-11-{day}T10-00-00-{session}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(data.replace(b"2026-11-20T", f"2026-11-{day}T".encode()))


# --- one example a method ------------------------------------------------------------------------

FACT = {
    "kind": "fact",
    "key": "auth.entry",
    "value": "login() is the only entry",
    "evidence": {"source": "file", "ref": "src/auth.py"},
    "dependsOn": [{"uri": "src/auth.py"}],
}
DRAWN = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<digest>(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f]))"
    r"|(?P<time>20\d\d-\d\d-\d\dT\d\d([:-])\d\d\4\d\d(?:\.\d{3}Z)?)"
    r"|(?P<place>(?<=remote/)[0-9a-f]{16})"
    r"|(?P<version>(?<=\.)[0-9a-f]{16}(?=\.jsonl))"
    r"|(?P<day>(?<=sessions/)20\d\d/\d\d/\d\d)"
)
LONGEST = 160
MOST = 2
"""So many entries of a list are shown, and so many characters of a text."""


def examples(folder: Path) -> dict[str, tuple[Json, Json]]:
    """Ask a real server; return request and answer by method, with all that is drawn anew fixed."""
    # Folders stand in session files, whose sizes are in answers: their length is always the same.
    home = Home(folder / ("x" * max(1, 119 - len(str(folder)))))
    fill(home, orders=True)
    known = b"".join(path.name.encode() + path.read_bytes() for path in home.root.rglob("*.jsonl"))
    pages: dict[str, tuple[Json, Json]] = {}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home.user)}
    with Peer(home.root, env=environment) as peer:
        peer.start()

        def ask(method: str, *, show: bool = True, **params: Json) -> Json:
            name = f"checkpoints/{method}"
            answer = peer.call(name, params)
            if show:
                pages[name] = params, answer
            return answer

        _reading(ask, str(home.user / "shop"))
        marker = _notes_and_markers(ask)
        _branches(ask, marker)
        _packs(ask, str(home.user))
        _remote(ask, home)
        ask("connect", status=True)
        ask("doctor")
        ask("page", kind="losses", sessionId=ORDERS)
        peer.stop()
    return _fixed(home, known, pages)


def _reading(ask: Callable[..., Json], shop: str) -> None:
    ask("sessions", cwd=shop, limit=1)
    ask("session", sessionId=LOGIN[:13])
    ask("show", sessionId=BLOG, turnId="1")
    ask("view", sessionId=LOGIN, caps={"maxRecentArtifacts": 1, "maxDonePlanSteps": 0})
    ask("digest", sessionId=LOGIN, tokens=300)
    ask("recall", sessionId=LOGIN, ref="#9")
    ask("search", text="refresh", kind="user")
    ask("searchSessions", text="refresh", kinds=["user"], perSession=1)
    ask("history", sessionId=BLOG)
    for method in ("windows", "outline", "losses", "timeline"):
        ask(method, sessionId=ORDERS)
    ask("transcript", sessionId=ORDERS, turnId="1")
    ask("changes", sessionId=LOGIN, texts=True)
    ask("diff", sessionId=ORDERS, fromTurnId="1", toTurnId="2")
    ask("resume", sessionId=SLOW)


def _notes_and_markers(ask: Callable[..., Json]) -> str:
    ask("anchors", sessionId=LOGIN, limit=1)
    ask("applyUpdate", sessionId=LOGIN, payload=FACT)
    ask("notes", sessionId=LOGIN)
    marker = ask("mark", sessionId=LOGIN, label="before the rewrite", turnId="1")["checkpointId"]
    other = ask("mark", show=False, sessionId=LOGIN, label="here")["checkpointId"]
    ask("relabel", sessionId=LOGIN, checkpointId=other, label="after the test")
    ask("marks", sessionId=LOGIN)
    ask("unmark", sessionId=LOGIN, checkpointId=other)
    ask("pin", sessionId=LOGIN, path="src/auth.py#L1-L1")
    ask("pins", sessionId=LOGIN)
    return marker


def _branches(ask: Callable[..., Json], marker: str) -> None:
    wanted = {"sessionId": LOGIN, "checkpointId": marker, "mode": "hard"}
    ask("restorePreview", **wanted, budget=600)
    restored = ask("restore", **wanted, reason="The rewrite went wrong")
    ask("restores", sessionId=LOGIN)
    ask("restoreDetails", operationId=restored["operationId"])
    turn = {"sessionId": ORDERS, "turnId": "1"}
    ask("restoreFilesPreview", **turn, texts=True)
    files = ask("restoreFiles", **turn)
    ask("undoRestoreFiles", operationId=files["operationId"])
    ask("branches", sessionId=LOGIN)
    ask("lineage", sessionId=LOGIN)
    ask("delete", sessionId=restored["sessionId"])
    ask("unpin", sessionId=LOGIN, path="src/auth.py#L1-L1")
    ask("revokeNote", sessionId=LOGIN, id="auth.entry")
    ask("compactPreview", sessionId=ORDERS, force=True)
    compacted = ask("compact", sessionId=ORDERS, force=True)
    ask("uncompact", compactionId=compacted["compactionId"])
    ask("audit", sessionId=ORDERS)


def _packs(ask: Callable[..., Json], user: str) -> None:
    ask("export", sessionId=BLOG, file=f"{user}/blog.pack")
    ask("import", file=f"{user}/blog.pack", cwd=f"{user}/blog")
    ask("rename", sessionId=BLOG, name="The post")
    ask("archive", sessionId=BLOG)
    ask("unarchive", sessionId=BLOG)


def _remote(ask: Callable[..., Json], home: Home) -> None:
    place = str(home.user / "sync")
    chosen = ask("remoteSet", place=place, make=True)
    chosen |= {"owner": "ana", "machine": "laptop"}  # the same on every machine
    choose_remote(str(home.state), ChosenRemote(place, "ana", "laptop", "1"))
    ask("remote")
    shown = ask("push", show=False, sessionIds=[ORDERS], dryRun=True)["sessions"][0]
    seen = [{key: shown[key] for key in ("sessionId", "lines", "digest")}]
    ask("push", sessionIds=[ORDERS], shown=seen)
    ask("remoteStatus")
    ask("remoteSessions", limit=1)
    ask("remoteSession", sessionId=ORDERS)
    ask("searchRemote", text="totals", kinds=["user"])
    ask("pull", sessionId=ORDERS, into=str(home.user / "shop"))
    ask("remoteDelete", sessionId=ORDERS)


def _fixed(
    home: Home, known: bytes, pages: dict[str, tuple[Json, Json]]
) -> dict[str, tuple[Json, Json]]:
    """Put fixed values in the place of folders, ids, times and digests, and shorten answers."""
    numbers: dict[str | None, dict[str, int]] = {}

    def value(found: re.Match[str]) -> str:
        # By kind: it is chance whether two times are equal, and they must not shift the ids.
        kind = found.lastgroup
        same = numbers.setdefault(kind, {})
        number = same.setdefault(found[0], len(same) + 1)
        if kind != "digest" and found[0].replace("/", "-").encode() in known:
            return found[0]
        if kind == "id":
            return f"01a20045-82dd-7000-8000-{number:012d}"
        if kind == "digest":
            return hashlib.sha256(str(number).encode()).hexdigest()
        if kind in {"place", "version"}:
            return hashlib.sha256(f"{kind} {number}".encode()).hexdigest()[:16]
        if kind == "day":
            return "2026/11/21"
        return "2026-11-21T11:00:00.000Z" if ":" in found[0] else "2026-11-21T11-00-00"

    folders = {
        str(home.root): "/home/ana/.codex",
        str(home.user): "/home/ana",
        str(Path(sys.executable).parent): "/home/ana/codex-checkpoints/bin",
    }
    fixed: dict[str, tuple[Json, Json]] = {}
    for name, (params, answer) in pages.items():
        told = json.dumps([params, answer], ensure_ascii=False)
        for folder, shown in folders.items():
            told = told.replace(folder, shown)
        told = DRAWN.sub(value, told)
        asked, answered = json.loads(told)
        fixed[name] = asked, shortened(answered)
    return fixed


def shortened(value: Json) -> Json:
    """Return an answer with the beginnings of its lists and of its long texts."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in cast("dict[str, Json]", value).items()}
    if isinstance(value, list):
        return [shortened(each) for each in cast("list[Json]", value)[:MOST]]
    if isinstance(value, str) and len(value) > LONGEST:
        return value[: LONGEST - 1] + "…"
    return value
