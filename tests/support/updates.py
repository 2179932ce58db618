"""Write lines of `updates.jsonl`: accepted updates, and revocations of earlier ones.

What an update rests on is given with the hash that the host saw then: `on={"a.py": V1}`.
"""

from collections.abc import Mapping

Line = dict[str, object]

UNKNOWN = "unknown:"
AT = "2026-11-20T09:00:00.000Z"
"""When all of them were accepted: before any session was forked."""


def sha(text: str) -> str:
    """Return a hash that is easily told from others: its last digits are those of the text."""
    return "sha256:" + text.encode().hex().rjust(64, "0")


V1, V2 = sha("v1"), sha("v2")


def fact(
    key: str,
    value: str = "so it is",
    *,
    seq: int = 0,
    turn: str | None = None,
    on: Mapping[str, str] | None = None,
    source: str = "user",
    ref: str = "u1",
    hashes: Mapping[str, str] | None = None,
) -> Line:
    """Accept a fact."""
    known = dict(on or {})
    payload: Line = {"kind": "fact", "key": key, "value": value, "evidence": _evidence(source, ref)}
    if known:
        payload |= {"dependsOn": [{"uri": uri} for uri in known]}
    return _line(payload, seq, turn, known | dict(hashes or {}))


def decision(
    name: str,
    text: str = "do it",
    rationale: str = "it helps",
    *,
    topic: str | None = None,
    supersedes: str | None = None,
    seq: int = 0,
    turn: str | None = None,
    source: str = "user",
    ref: str = "u1",
) -> Line:
    """Accept a decision."""
    payload: Line = {"kind": "decision", "decisionId": name}
    payload |= {} if topic is None else {"topic": topic}
    payload |= {"decision": text, "rationale": rationale}
    payload |= {} if supersedes is None else {"supersedes": supersedes}
    return _line(payload | {"evidence": _evidence(source, ref)}, seq, turn, {})


def steps(
    *names: str, done: Mapping[str, bool] | None = None, seq: int = 0, turn: str | None = None
) -> Line:
    """Accept a plan; the text of each step is `do <id>`."""
    told = [{"id": name, "text": f"do {name}"} for name in names]
    payload: Line = {"kind": "plan", "steps": told}
    payload |= {} if done is None else {"done": dict(done)}
    return _line(payload | {"evidence": _evidence("user", "u1")}, seq, turn, {})


def revoked(kind: str, name: str, *, seq: int = 0, turn: str | None = None) -> Line:
    """Revoke earlier updates of a fact or decision."""
    revoke = {"kind": kind, "id": name}
    return {"revoke": revoke, "seq": seq, "turnId": turn, "at": AT}


def _evidence(source: str, ref: str) -> Line:
    return {"source": source, "ref": ref}


def _line(payload: Line, seq: int, turn: str | None, hashes: Mapping[str, str]) -> Line:
    return {
        "updateId": "01a1f865-0000-7000-8000-0000000000ff",
        "seq": seq,
        "turnId": turn,
        "at": AT,
        "payload": payload,
        "hashes": dict(hashes),
    }
