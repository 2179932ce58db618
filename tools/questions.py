"""What `same_answers.py` asks about a home: all commands, all methods, all files."""

import base64
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from asking import Asked, Json, Peer, at, items, rows_of, text_of

NOBODY = "01a00000-0000-7000-8000-00000000dead"
MOST_SESSIONS = 3
"""So many sessions of a home are asked, the newest ones."""
MOST_TURNS = 20
"""So many turns of a session are asked one by one."""
CURSOR = re.compile(r'(?<="nextCursor": ")[A-Za-z0-9+/=_-]+(?=")')


def ask_everything(asked: Asked) -> None:
    """Ask a home all there is."""
    sessions = reading(asked)
    touring(asked, sessions)
    methods(asked, sessions)
    doors(asked, sessions)
    files(asked)


def reading(asked: Asked) -> list[str]:
    """Ask the commands that change nothing; return the ids of the sessions."""
    listed = items(asked.both("read", "sessions"))
    listed += items(asked.both("read", "sessions", "--archived"))
    sessions = [str(at(each, "sessionId")) for each in listed][:MOST_SESSIONS]
    asked.both("read", "sessions", "--limit", "1")
    asked.both("read", "sessions", "--search", "test", "--cwd", str(asked.place / "work"))
    for session in sessions:
        make_files(asked, asked.command("read", "show", session))
    for session in sessions:
        read_session(asked, session)
    for name in ("audit", "doctor", "restores"):
        asked.both("read", name)
    asked.both("read", "connect", "--dry-run")
    asked.both("read", "connect", "--status")
    asked.command("read", "apply", "--schema")
    refusals(asked, sessions)
    return sessions


def make_files(asked: Asked, checkpoint: Json) -> None:
    """Put the files there that a session has seen, as far as they lie in its folder."""
    artifacts: dict[str, Json] = at(checkpoint, "artifacts") or {}
    for uri, artifact in artifacts.items():
        path = asked.place / "work" / uri
        if at(artifact, "kind") != "file" or asked.place / "work" not in path.resolve().parents:
            continue
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"line {number} of {uri}\n" for number in range(1, 13)))


def read_session(asked: Asked, session: str) -> None:
    """Ask about one session."""
    for name in ("show", "view"):
        asked.both("read", name, session)
        asked.both("read", name, session, "--at", "1")
    asked.command(
        "read", "view", session, "--caps", '{"maxRecentArtifacts": 1, "maxValueChars": 9}'
    )
    for name in ("history", "windows", "outline", "losses", "notes", "marks", "lineage"):
        asked.both("read", name, session)
    for name in ("pin", "restores", "digest", "timeline", "changes"):
        asked.both("read", name, session)
    for options in (("--ref", "t1"), ("--query", "e", "--limit", "9")):
        asked.both("read", "recall", session, *options)
    asked.both("read", "search", "the", "--limit", "9")
    asked.command("read", "windows", session, "--fragment")
    for options in (("--from", "1"), ("--from", "1", "--to", "2")):
        asked.both("read", "diff", session, *options)
    asked.both("read", "notes", "anchors", session, "--limit", "3")
    asked.both("read", "resume", session, "--print")


def refusals(asked: Asked, sessions: list[str]) -> None:
    """Ask what is refused, and what is no right usage."""
    session = sessions[0] if sessions else NOBODY
    of_a_session = ("show", "view", "history", "windows", "outline", "losses", "notes", "lineage")
    for name in (*of_a_session, "marks", "compact", "resume", "archive", "unarchive", "delete"):
        asked.both("read", name, NOBODY)
    for wrong in (
        ("show", session[:4]),
        ("show", session, "--at", "99"),
        ("show", "/nowhere/rollout.jsonl"),
        ("view", session, "--at", "none"),
        ("view", session, "--caps", "{"),
        ("view", session, "--caps", '{"maxPlans": 1}'),
        ("view", session, "--caps", '{"maxDecisions": -1}'),
        ("diff", session, "--from", "98", "--to", "99"),
        ("mark", session, "--label", "x", "--turn", "99"),
        ("mark", session, "--label", " "),
        ("unmark", session, NOBODY),
        ("relabel", session, NOBODY, "new"),
        ("restore", session, NOBODY, "--mode", "hard"),
        ("restore-details", NOBODY),
        ("uncompact", NOBODY),
        ("unpin", session, "nothing.py"),
        ("pin", session, "/etc/passwd"),
        ("notes", "revoke", session, "nothing"),
        ("delete", session),
        ("unarchive", session),
        ("compact", session, "--placement", "mid_turn"),
        ("compact", session, "--strategy", "codex", "--dry-run"),
        ("import", "/nowhere/pack.json"),
        ("export", session, "/nowhere/at/all/pack.json"),
        ("audit", "--session", NOBODY, "--operation", NOBODY),
    ):
        asked.both("read", *wrong)
    for payload in PAYLOADS:
        told = json.dumps(payload).encode()
        asked.command("read", "apply", session, "--dry-run", "--json", stdin=told)
    asked.both("read", "apply", session, stdin=b"{")
    for usage in ((), ("nonsense",), ("show",), ("show", session, "--nonsense"), ("sessions", "x")):
        asked.command("read", *usage)
    for usage in (
        ("restore", session, "x"),
        ("compact", session, "--into", "air"),
        ("mark", session),
    ):
        asked.both("read", *usage)
    asked.both("read", "sessions", "--limit", "-1")
    asked.both("read", "sessions", "--codex-home", "/nowhere")


PAYLOADS: list[Json] = [
    [],
    {"kind": "task"},
    {"kind": "fact", "key": "a b", "value": 1},
    {"kind": "fact", "key": "k", "value": "v"},
    {"kind": "fact", "key": "k", "value": "v", "evidence": {"source": "user", "ref": "nobody"}},
    {"kind": "fact", "key": "k", "value": "v", "evidence": {"source": "file", "ref": "no.py"}},
    {"kind": "decision", "decisionId": "d", "decision": "x", "rationale": "y", "supersedes": "z"},
    {"kind": "plan", "steps": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]},
    {"kind": "plan", "steps": [], "more": True},
]


def touring(asked: Asked, sessions: list[str]) -> None:
    """Change things by commands."""
    for session in sessions[:2]:
        tour_of_notes(asked, session)
    for session in sessions[-1:]:
        marker = tour_of_markers(asked, session)
        tour_of_restores(asked, session, marker)
        tour_of_compactions(asked, session)
        tour_of_packs(asked, session)
    for session in sessions[:1]:
        asked.both("tour", "rename", session, "A new name")
        asked.both("tour", "archive", session)
        asked.both("tour", "show", session)
        asked.both("tour", "unarchive", session)
        asked.both("tour", "rename", session, "")
    asked.both("tour", "connect", "--yes")
    asked.both("tour", "connect", "--status")
    asked.note("tour", "config.toml", text_of(asked.place / "codex/config.toml"))
    asked.both("tour", "connect", "--yes")
    asked.both("tour", "connect", "--remove", "--yes")
    for name in ("sessions", "restores", "audit", "doctor"):
        asked.both("tour", name)


def tour_of_notes(asked: Asked, session: str) -> None:
    """Add notes, change a file they rest on, and take one back."""
    anchors = asked.command("tour", "notes", "anchors", session, "--json")
    by_source: dict[str, Json] = {}
    for anchor in items(anchors):
        by_source.setdefault(str(at(anchor, "source")), anchor)
    for number, (source, anchor) in enumerate(sorted(by_source.items())):
        evidence = {"source": source, "ref": at(anchor, "ref")}
        seen = at(by_source, "file", "ref")
        notes: list[Json] = [
            {
                "kind": "fact",
                "key": f"fact-{number}",
                "value": f"said by {source}",
                "evidence": evidence,
                **({"dependsOn": [{"uri": seen}]} if seen else {}),
            },
            {
                "kind": "decision",
                "decisionId": f"d{number}",
                "topic": "tests",
                "decision": "Write them first",
                "rationale": "they show what is meant",
                "evidence": evidence,
                **({"supersedes": f"d{number - 1}"} if number else {}),
            },
        ]
        for note in notes:
            asked.both("tour", "apply", session, "--dry-run", stdin=json.dumps(note).encode())
            asked.command("tour", "apply", session, "--json", stdin=json.dumps(note).encode())
    if "user" in by_source:
        plan: Json = {
            "kind": "plan",
            "steps": [{"id": "s1", "text": "Look"}, {"id": "s2", "text": "Change"}],
            "done": {"s1": True},
            "evidence": {"source": "user", "ref": at(by_source, "user", "ref")},
        }
        asked.command("tour", "apply", session, stdin=json.dumps(plan).encode())
    look(asked, session)
    seen = at(by_source, "file", "ref")
    if seen and (asked.place / "work" / seen).is_file():
        (asked.place / "work" / seen).write_text("other words\n")
        look(asked, session)
    asked.both("tour", "notes", "revoke", session, "fact-0")
    look(asked, session)


def look(asked: Asked, session: str) -> None:
    """Ask for the state of a session."""
    asked.command("tour", "show", session)
    asked.command("tour", "view", session)
    asked.both("tour", "notes", session)


def tour_of_markers(asked: Asked, session: str) -> str:
    """Put, rename and remove markers, pin files; return the id of a marker."""
    first = asked.command(
        "tour", "mark", session, "--label", "At the start", "--turn", "1", "--json"
    )
    asked.command("tour", "mark", session, "--label", "Here")
    other = asked.command("tour", "mark", session, "--label", "Not for long", "--json")
    asked.both("tour", "marks", session)
    asked.both("tour", "relabel", session, str(at(other, "checkpointId")), "Longer")
    asked.both("tour", "unmark", session, str(at(other, "checkpointId")))
    (asked.place / "work/pinned.txt").write_text("one\ntwo\nthree\n")
    for path in ("pinned.txt", "pinned.txt#L1-L2", "gone.txt"):
        asked.both("tour", "pin", session, path)
    asked.both("tour", "unpin", session, "gone.txt")
    for name in ("marks", "pin"):
        asked.both("tour", name, session)
    return str(at(first, "checkpointId"))


def tour_of_restores(asked: Asked, session: str, marker: str) -> None:
    """Restore in both modes, look at the branches, and remove one."""
    for options in (
        ("--mode", "soft"),
        ("--mode", "hard"),
        ("--mode", "hard", "--budget", "300"),
        ("--mode", "hard", "--budget", "600", "--window", "2", "--reason", "It went wrong"),
    ):
        asked.both("tour", "restore", session, marker, *options, "--dry-run")
    for mode in ("soft", "hard"):
        done = asked.command("tour", "restore", session, marker, "--mode", mode, "--json")
        branch = str(at(done, "sessionId"))
        asked.both("tour", "restore-details", str(at(done, "operationId")))
        look(asked, branch)
        for name in ("history", "windows", "losses", "outline", "lineage", "marks", "pin"):
            asked.both("tour", name, branch)
        asked.command("tour", "audit", "--session", branch, "--json")
    asked.command("tour", "restore", session, marker, "--mode", "hard", "--window", "3")
    asked.both("tour", "restores", session)
    asked.both("tour", "lineage", session)
    asked.command("tour", "delete", branch)
    asked.both("tour", "lineage", session)


def tour_of_compactions(asked: Asked, session: str) -> None:
    """Compact in both ways, and take it back."""
    for options in ((), ("--force",), ("--into", "in-place", "--force", "--placement", "pre_turn")):
        asked.both("tour", "compact", session, "--dry-run", *options)
    for options in (("--force",), ("--force", "--into", "in-place")):
        done = asked.command("tour", "compact", session, *options, "--json")
        for where in dict.fromkeys((session, str(at(done, "sessionId")))):
            look(asked, where)
            for name in ("history", "windows", "losses", "lineage"):
                asked.both("tour", name, where)
        asked.both("tour", "resume", session, "--print")
        asked.both("tour", "uncompact", str(at(done, "compactionId")))
        asked.both("tour", "windows", session)
        look(asked, session)


def tour_of_packs(asked: Asked, session: str) -> None:
    """Export a session and import it again."""
    pack = asked.place / "out" / f"{session}.pack"
    asked.both("tour", "export", session, str(pack), "--dry-run")
    asked.both("tour", "export", session, str(pack))
    asked.note("tour", "the pack", text_of(pack))
    asked.both("tour", "export", session, str(pack), "--force")
    asked.both("tour", "import", str(pack), "--dry-run")
    done = asked.command("tour", "import", str(pack), "--json")
    new = str(at(done, "sessionId"))
    look(asked, new)
    for name in ("history", "windows", "lineage"):
        asked.both("tour", name, new)
    asked.both("tour", "delete", new)


def methods(asked: Asked, sessions: list[str]) -> None:
    """Ask every method of `serve`."""
    peer = Peer(asked.build, asked.env, asked.place / "work")

    def ask(method: str, **params: Json) -> Json:
        name = f"checkpoints/{method}" if method[0].islower() and "/" not in method else method
        answer = peer.ask(name, params)
        told = json.dumps(answer, ensure_ascii=False, indent=1)
        told = CURSOR.sub(lambda found: base64.b64decode(found[0]).decode(errors="replace"), told)
        asked.note("methods", f"{method} {json.dumps(params, sort_keys=True)}", told)
        return at(answer, "result")

    capabilities: Json = {"processId": None, "rootUri": None, "capabilities": {}}
    result = peer.ask("initialize", {**capabilities, "initializationOptions": {"settings": {}}})
    asked.note("methods", "initialize", json.dumps(result, indent=1))
    peer.send({"method": "initialized", "params": {}})
    ask("sessions")
    ask("sessions", archived=True)
    ask("sessions", limit=1, search="t")
    ask("sessions", cwd=str(asked.place / "work"), limit=1000)
    ask("sessions", outside=[str(asked.place / "work")])
    for session in sessions:
        methods_that_read(ask, session)
    for session in sessions[:1]:
        methods_that_change(ask, session, asked.place)
    for name in ("restores", "audit", "doctor", "sessions"):
        ask(name)
    ask("connect", status=True)
    ask("connect", dryRun=True)
    ask("connect")
    ask("connect", remove=True)
    ask("connect", remove=True, status=True)
    for name in METHODS:
        ask(name, sessionId=NOBODY, checkpointId=NOBODY, nonsense=True)
        ask(name, sessionId=7)
    ask("nonsense")
    asked.note("methods", "exit", str(peer.close()))


METHODS = (
    *("sessions", "session", "show", "view", "applyUpdate", "notes", "revokeNote", "anchors"),
    *("history", "windows", "outline", "losses", "diff", "mark", "marks", "unmark"),
    *("relabel", "pin", "unpin", "pins", "restorePreview", "restore", "restores"),
    *("restoreDetails", "branches", "lineage", "audit", "compactPreview", "compact"),
    *("uncompact", "resume", "export", "import", "rename", "archive", "unarchive", "delete"),
    *("connect", "doctor", "digest", "recall", "search", "timeline", "transcript", "changes"),
    *("searchSessions", "restoreFilesPreview", "restoreFiles", "undoRestoreFiles", "page"),
    *("remote", "remoteSet", "remoteStatus", "remoteSessions", "remoteSession", "remoteDelete"),
    *("searchRemote", "push", "pull"),
)
"""Every method; `unasked` compares them with those of the build."""


def methods_that_read(ask: Callable[..., Json], session: str) -> None:
    """Ask the methods about a session that change nothing."""
    for name in (
        *("session", "show", "view", "notes", "anchors", "history", "windows", "outline", "losses"),
        *("marks", "pins", "restores", "branches", "lineage", "audit"),
        *("compactPreview", "resume", "digest", "timeline", "changes"),
    ):
        ask(name, sessionId=session)
    ask("show", sessionId=session, turnId="1")
    ask("view", sessionId=session, turnId="1", caps={"maxDecisions": 1})
    ask("show", sessionId=session, turnId="99")
    for turn in items({"items": at(ask("timeline", sessionId=session), "turns")})[:MOST_TURNS]:
        place = {"sessionId": session, "turnId": at(turn, "turnId")}
        for name in ("show", "view", "transcript", "restoreFilesPreview"):
            ask(name, **place)
    ask("recall", sessionId=session, query="e")
    for number in range(MOST_TURNS):
        ask("recall", sessionId=session, ref=f"#{number}")
        ask("recall", sessionId=session, ref=f"t{number}")
    for name in ("search", "searchSessions"):
        ask(name, text="the")
    for name in ("losses", "digest", "checkpoint"):
        ask("page", kind=name, sessionId=session)
    ask("diff", sessionId=session, fromTurnId="1", toTurnId=None)
    ask("anchors", sessionId=session, limit=2)
    ask("compactPreview", sessionId=session, into="in-place", force=True)


def methods_that_change(ask: Callable[..., Json], session: str, place: Path) -> None:
    """Ask the methods about a session that change something."""
    marker = at(ask("mark", sessionId=session, label="By method", turnId="1"), "checkpointId")
    gone = at(ask("mark", sessionId=session, label="Gone soon"), "checkpointId")
    ask("relabel", sessionId=session, checkpointId=marker, label="By a method")
    ask("unmark", sessionId=session, checkpointId=gone)
    ask("pin", sessionId=session, path="pinned.txt#L2-L3")
    ask("unpin", sessionId=session, path="pinned.txt")
    anchors = items(ask("anchors", sessionId=session))
    user = next((each for each in anchors if at(each, "source") == "user"), None)
    decision: Json = {"kind": "decision", "decisionId": "m1", "decision": "Go on"}
    decision |= {"rationale": "it works", "evidence": {"source": "user", "ref": at(user, "ref")}}
    for dry in (True, False):
        ask("applyUpdate", sessionId=session, payload=decision, dryRun=dry)
    ask("revokeNote", sessionId=session, id="m1")
    for mode in ("soft", "hard"):
        named = {"sessionId": session, "checkpointId": marker, "mode": mode}
        ask("restorePreview", **named, budget=500 if mode == "hard" else None)
        done = ask("restore", **named, reason="To compare")
        ask("restoreDetails", operationId=at(done, "operationId"))
        ask("session", sessionId=at(done, "sessionId"))
        ask("delete", sessionId=at(done, "sessionId"))
    for into in ("new", "in-place"):
        done = ask("compact", sessionId=session, into=into, force=True)
        ask("windows", sessionId=at(done, "sessionId"))
        ask("uncompact", compactionId=at(done, "compactionId"))
    pack = str(place / "out" / "method.pack")
    for more in ({"dryRun": True}, {}, {}, {"force": True}):
        ask("export", sessionId=session, file=pack, **more)
    for dry in (True, False):
        done = ask("import", file=pack, cwd=str(place / "work"), dryRun=dry)
    ask("session", sessionId=at(done, "sessionId"))
    ask("rename", sessionId=session, name="By method")
    ask("archive", sessionId=session)
    ask("unarchive", sessionId=session)
    for name in ("session", "lineage", "branches", "marks", "notes", "windows", "losses"):
        ask(name, sessionId=session)


def doors(asked: Asked, sessions: list[str]) -> None:
    """Call the hook and the MCP server as Codex does."""
    for session in sessions[:2]:
        listed = list((asked.place / "codex").glob(f"*sessions/**/*{session}.jsonl*"))
        told = {
            "session_id": session,
            "cwd": str(asked.place / "work"),
            "model": "gpt-5.5",
            "transcript_path": str(listed[0]) if listed else None,
        }
        for event, source in (
            *(("SessionStart", source) for source in ("startup", "resume", "fork", "compact")),
            *(("PreCompact", "manual"), ("PostCompact", "manual")),
        ):
            key = "source" if event == "SessionStart" else "trigger"
            call = {**told, "hook_event_name": event, key: source}
            asked.command("doors", "hook", stdin=json.dumps(call).encode())
        meta = {"threadId": session, "windowId": f"{session}:0", "callId": "call_1"}
        lines: list[Json] = [
            (
                "initialize",
                {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO},
            ),
            ("tools/list", {}),
            ("tools/call", {"name": "memory.read", "arguments": {}, "_meta": meta}),
            ("tools/call", {"name": "memory.read", "arguments": {"limit": 1}, "_meta": meta}),
            ("tools/call", {"name": "memory.read", "arguments": {}}),
            ("tools/call", {"name": "nonsense", "arguments": {}, "_meta": meta}),
            *(
                ("tools/call", {"name": "memory.apply", "arguments": payload, "_meta": meta})
                for payload in PAYLOADS
            ),
            ("nonsense", {}),
        ]
        asked.command("doors", "mcp", stdin=b"".join(_request(*line) for line in enumerate(lines)))
        asked.both("doors", "windows", session)
    asked.command("doors", "hook", stdin=b"no json")
    asked.command("doors", "mcp", stdin=b"no json\n")
    asked.command("doors", "connect", "--status", "--json")


INFO = {"name": "same-answers", "version": "1"}


def _request(number: int, line: tuple[str, Json]) -> bytes:
    method, params = line
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        + b"\n"
    )


def files(asked: Asked) -> None:
    """Read every file of the home, once all its checkpoints are up to date.

    Whether the server stored a checkpoint of a session that is gone by now is chance.
    """
    asked.command("files", "watch", "--once")
    home = asked.place / "codex"
    rollouts = " ".join(path.name for path in home.rglob("rollout-*"))
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.is_dir() or name.endswith(("-wal", "-shm")):
            continue
        if path.name == "checkpoint_v1.json" and path.parent.name not in rollouts:
            continue
        asked.note("files", name, rows_of(path) if path.suffix == ".sqlite" else text_of(path))
