"""Reads the bytes of a pack, trusts nothing in them, and makes the state of a new session.

A pack is refused whole if it differs from ours; texts that look like a secret are removed.  A hash
is never copied: a file gets the hash that this machine computes.  A fact is SUSPECT until it is
accepted here, and says that it was imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Any, Literal

import orjson
from attrs import asdict, evolve, frozen

from codex_checkpoints.core.checkpoint.note_rules import policy_in
from codex_checkpoints.core.checkpoint.note_schema import MAX_DEPENDENCIES, read
from codex_checkpoints.core.checkpoint.policy import standing_policy
from codex_checkpoints.core.checkpoint.records import (
    IMPORTED,
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    UNKNOWN_HASH,
    Artifact,
    Checkpoint,
    Dependency,
    Evidence,
    Fact,
    Limits,
    evidence_in,
    resting_on_evidence,
    status_of,
)
from codex_checkpoints.core.checkpoint.redaction import redact, value
from codex_checkpoints.core.converters import MISFITS, problems_of, read_or_none, stored
from codex_checkpoints.core.fields import CONTROLS, Json, is_list, is_object
from codex_checkpoints.core.portable.pack import (
    FORMAT,
    HIDDEN,
    LISTS,
    MAX_BYTES,
    VERSION,
    Pack,
    is_id,
    is_portable,
    is_time,
    is_version,
    json_of,
    packs,
)
from codex_checkpoints.core.portable.seeds import ImportHead
from codex_checkpoints.core.restore.lineage import Cut, Link
from codex_checkpoints.core.restore.markers import Marker, created, label_of, pinned
from codex_checkpoints.core.restore.references import WEAK

Code = Literal["invalid_payload", "limit_exceeded", "policy_text"]

MAX_DEPTH = 12
"""The depth of lists and objects; a pack of ours needs nine."""

MAX_VALUES = MAX_BYTES // 16
"""The maximum number of values in a pack: one of ours takes more bytes, with its key.

Without this bound the values of a pack could take a hundred times its size in memory.
"""

_LARGEST = 1 << 48
"""More records than any session has."""
_UNSEEN = re.compile(f"[{CONTROLS}{HIDDEN}\\ud800-\\udfff]")


class BadPack(ValueError):
    """Bytes that are not a pack; `problems` name places in it and quote none of its texts."""

    def __init__(self, code: Code, problems: Iterable[str]) -> None:
        self.code: Code = code
        self.problems = tuple(problems)[:8]
        super().__init__("; ".join(self.problems))


def pack_in(data: bytes) -> Pack:
    """Read a pack; raises `BadPack`."""
    pack = _pack_in(data)
    _refuse("policy_text", policies(pack))
    return pack


def _pack_in(data: bytes) -> Pack:
    """Read a pack that an earlier policy filter may have accepted; raises `BadPack`."""
    if len(data) > MAX_BYTES:
        raise BadPack("limit_exceeded", [f"size: more than {MAX_BYTES} bytes"])
    values = _json(data)
    if values.get("format") != FORMAT:
        raise BadPack("invalid_payload", ["format: not a pack of codex-checkpoints"])
    if type(values.get("version")) is not int or values["version"] != VERSION:
        raise BadPack("invalid_payload", [f"version: only {VERSION} is known here"])
    _refuse("limit_exceeded", too_long(values))
    del values["format"], values["version"]
    pack = _structured(values)
    _refuse("limit_exceeded", (*too_many(pack), *_too_long(values)))
    _refuse("invalid_payload", (*_misshapen(values), *wrong(pack)))
    return pack


def _refuse(code: Code, found: Iterable[str]) -> None:
    if problems := [*found]:
        raise BadPack(code, problems)


def _json(data: bytes) -> dict[str, Any]:
    """Read strict JSON: UTF-8, unique keys, no deeper than `MAX_DEPTH`, texts without secrets."""
    try:
        # orjson is stricter about numbers and characters, bounds the depth, takes little memory.
        too_much = _values_in(orjson.loads(data)) > MAX_VALUES
        found: object = None if too_much else json.loads(data, object_pairs_hook=_once)
    except BadPack:
        raise
    except (ValueError, RecursionError):
        raise BadPack("invalid_payload", ["not JSON"]) from None
    if too_much:
        raise BadPack("limit_exceeded", [f"more than {MAX_VALUES} values"])
    if not is_object(found):
        raise BadPack("invalid_payload", ["not a JSON object"])
    clean = _clean(found, MAX_DEPTH)
    if not is_object(clean):
        raise BadPack("invalid_payload", ["not a JSON object"])
    return clean


def _values_in(found: object) -> int:
    inside, count = [found], 1
    while inside and count <= MAX_VALUES:
        part = inside.pop()
        more: Collection[object] = ()
        if is_object(part):
            more = part.values()
        elif is_list(part):
            more = part
        count += len(more)
        if count <= MAX_VALUES:
            inside.extend(more)
    return count


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadPack("invalid_payload", ["an object has a duplicate key"])
    return found


def _clean(part: object, depth: int) -> object:
    """Return a JSON value whose texts are plain and contain no secret."""
    if isinstance(part, str):
        if _UNSEEN.search(part):
            raise BadPack("invalid_payload", ["a text holds a character that nobody sees"])
        return redact(part)
    if type(part) is int and not -1 <= part < _LARGEST:
        raise BadPack("invalid_payload", ["a number is out of range"])
    if depth == 0 and (is_list(part) or is_object(part)):
        raise BadPack("limit_exceeded", [f"deeper than {MAX_DEPTH}"])
    if is_list(part):
        return [_clean(each, depth - 1) for each in part]
    if not is_object(part):
        return part
    clean = {str(_clean(key, 1)): _clean(each, depth - 1) for key, each in part.items()}
    if len(clean) < len(part):
        raise BadPack("invalid_payload", ["an object has a duplicate key"])
    return clean


def _structured(values: Mapping[str, Any]) -> Pack:
    if not all(is_list(values.get(name)) for name in LISTS):
        raise BadPack("invalid_payload", [f"{', '.join(LISTS)}: must be lists"])
    try:
        return packs.structure(values, Pack)
    except MISFITS as misfit:
        problems = (value(each.text("pack"), MAX_VALUE_CHARS) for each in problems_of(misfit))
        raise BadPack("invalid_payload", problems) from None


_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_HASH = re.compile(r"sha256:[0-9a-f]{64}|stat:\d{1,20}-\d{1,20}|unknown:", re.ASCII)
_VALUES = ("name", "model", "text", "topic", "decision", "rationale", "value", "label", "mode")

_LONGEST = dict.fromkeys(_VALUES, MAX_VALUE_CHARS) | {"uri": MAX_URI_CHARS}
"""The most characters of a text, by its key."""

_FORMS: Mapping[str, tuple[Callable[[str], object], str]] = {
    **dict.fromkeys(("turnId", "checkpointId", "child", "parent"), (is_id, "no plain name")),
    "sessionId": (_SESSION.fullmatch, "no plain name"),
    **dict.fromkeys(("id", "ref"), (lambda text: 0 < len(text) <= MAX_URI_CHARS, "no name")),
    **dict.fromkeys(("startedAt", "endedAt", "at", "createdAt"), (is_time, "not a time in UTC")),
    **dict.fromkeys(("hash", "seenHash"), (_HASH.fullmatch, "not a hash")),
    "cliVersion": (is_version, "not a version"),
}
"""The form of a text by its key, and the problem of another form."""


def _texts(part: object, at: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the texts of a pack, each with its place and its key, without payloads.

    A place quotes no name of a fact or an artifact.
    """
    if isinstance(part, str):
        yield at, key, part
    elif is_list(part):
        for number, each in enumerate(part):
            yield from _texts(each, f"{at}[{number}]")
    elif is_object(part):
        named = key not in {"facts", "artifacts"}
        for number, (name, each) in enumerate(part.items()):
            if not (named and name == "payload"):
                place = f"{at}.{name}".lstrip(".") if named else f"{at}[{number}]"
                yield from _texts(each, place, name if named else "")


def _too_long(values: Json) -> Iterator[str]:
    for at, key, text in _texts(values):
        if len(text) > _LONGEST.get(key, len(text)):
            yield f"{at}: more than {_LONGEST[key]} characters"


def _misshapen(values: Json) -> Iterator[str]:
    for at, key, text in _texts(values):
        if key in _FORMS and not _FORMS[key][0](text):
            yield f"{at}: {_FORMS[key][1]}"


def too_long(values: Json) -> Iterator[str]:
    """Yield the lists that are too long, before anything in them is read."""
    for name, most in LISTS.items():
        found = values.get(name)
        if is_list(found) and len(found) > most:
            yield f"{name}: {len(found)}, more than {most}"


def too_many(pack: Pack) -> Iterator[str]:
    """Yield the other excesses."""
    checkpoint, limits = pack.checkpoint, Limits()
    deps = max((len(each.depends_on) for each in checkpoint.facts.values()), default=0)
    for name, count, most in (
        ("checkpoint.artifacts", len(checkpoint.artifacts), limits.max_artifacts_total),
        ("checkpoint.facts", len(checkpoint.facts), limits.max_facts_total),
        ("checkpoint.decisions", len(checkpoint.decisions), limits.max_decisions_total),
        ("checkpoint.plan", len(checkpoint.plan.steps), limits.max_plan_steps_total),
        ("dependsOn", deps, MAX_DEPENDENCIES + limits.max_artifacts_total),
    ):
        if count > most:
            yield f"{name}: {count}, more than {most}"
    commands = (each.uri for each in checkpoint.artifacts.values() if each.kind == "command")
    if any(len(text) > MAX_VALUE_CHARS for text in commands):
        yield f"a command is longer than {MAX_VALUE_CHARS} characters"


def wrong(pack: Pack) -> Iterator[str]:
    """Yield the problems of a pack, each by its place."""
    yield from _wrong_numbers(pack)
    yield from _wrong_files(pack)
    yield from _wrong_notes(pack)
    yield from _wrong_past(pack)
    yield from _wrong_markers(pack)


def _wrong_numbers(pack: Pack) -> Iterator[str]:
    """Yield observations before the first record; -1 is the `seq` of an empty session."""
    checkpoint = pack.checkpoint
    artifacts = checkpoint.artifacts
    if checkpoint.seq < 0 and (checkpoint.task is not None or artifacts):
        yield "checkpoint.seq: something was seen before the first record"
    if any(each.last_observed_seq < 0 for each in artifacts.values()):
        yield "checkpoint.artifacts: one was seen before the first record"
    recent = checkpoint.recent_artifacts
    if len(set(recent)) < len(recent) or not artifacts.keys() >= set(recent):
        yield "checkpoint.recentArtifacts: not some of the artifacts, each once"


def _wrong_files(pack: Pack) -> Iterator[str]:
    checkpoint = pack.checkpoint
    files = [each.uri for each in checkpoint.artifacts.values() if each.kind == "file"]
    files += [each.ref for each in evidence_in(checkpoint) if each.source == "file"]
    files += [pin.uri for pin in pack.pins]
    others = {each.uri for each in checkpoint.artifacts.values() if each.kind != "file"}
    resting = {each.uri for fact in checkpoint.facts.values() for each in fact.depends_on}
    if not all(map(is_portable, (*files, *(resting - others)))):
        yield "a file is not named below the folder of the session"
    for pin in pack.pins:
        start, end = pin.start, pin.end
        if (start is None) != (end is None) or not 1 <= (start or 1) <= (end or start or 1):
            yield "pins: lines are counted from 1, and the last is not before the first"
    if any(not each.uri.strip() for each in checkpoint.artifacts.values()):
        yield "an artifact has no name"


def _wrong_past(pack: Pack) -> Iterator[str]:
    """Yield impossible data: an open turn with an end, and turns, modes, links in disorder."""
    way = [pack.origin.session_id, *(each.parent for each in pack.lineage)]
    if [each.child for each in pack.lineage] != way[:-1] or len(set(way)) < len(way):
        yield "lineage: not one way up from the session"
    turns = {(each.session_id, each.turn_id) for each in pack.turns}
    if len(turns) < len(pack.turns):
        yield "turns: a duplicate"
    reached: dict[str, int] = {}
    for turn in pack.turns:
        if turn.number <= reached.get(turn.session_id, 0):
            yield "turns: those of a session are numbered from 1, and in order"
        reached[turn.session_id] = turn.number
    if any(turn.end == "open" and turn.ended_at is not None for turn in pack.turns):
        yield "turns: one that is open has ended"
    steps = [0, *(each.seq for each in pack.modes), max(0, pack.checkpoint.seq)]
    if steps != sorted(steps):
        yield "modes: not in order up to the checkpoint"
    if any(not each.mode.strip() for each in pack.modes):
        yield "modes: one has no name"


def _wrong_markers(pack: Pack) -> Iterator[str]:
    markers = [each.checkpoint_id for each in pack.markers]
    if len(set(markers)) < len(markers):
        yield "markers: a duplicate"
    if any(not label_of(each.label) for each in pack.markers):
        yield "markers: one has no label"
    if len(set(pack.pins)) < len(pack.pins):
        yield "pins: a duplicate"


def _wrong_notes(pack: Pack) -> Iterator[str]:
    for place, note in enumerate(pack.notes):
        if note.payload is None:
            continue
        claim = read(note.payload)
        if isinstance(claim, list):
            yield f"notes[{place}]: {claim[0]}"
    plan = pack.checkpoint.plan
    steps = [step.id for step in plan.steps]
    if len(set(steps)) < len(steps) or not plan.done.keys() <= set(steps):
        yield "checkpoint.plan: a duplicate step, or a missing one that is done"
    for place, claim in _claims(pack.checkpoint):
        problems = read(claim)
        if isinstance(problems, list):
            yield f"{place}: {problems[0]}"


def policies(pack: Pack) -> Iterator[str]:
    """Yield the texts that tell an agent how to behave from now on, by place (DSC-60, TRU-7).

    Notes are read as `apply` reads them; elsewhere every text and every name is checked.
    """
    noted = ((f"notes[{n}]", note.payload) for n, note in enumerate(pack.notes))
    for place, claimed in (*_claims(pack.checkpoint), *noted):
        claim = None if claimed is None else read(claimed)
        if claim is not None and not isinstance(claim, list) and policy_in(claim) is not None:
            yield f"{place}: a standing order, not a note"
    named = (
        (f"checkpoint.{kind}[{n}]", kind, name)
        for kind, names in (
            ("artifacts", pack.checkpoint.artifacts),
            ("facts", pack.checkpoint.facts),
            ("plan.done", pack.checkpoint.plan.done),
        )
        for n, name in enumerate(names)
    )
    for place, _, text in (*_texts(json_of(pack)), *named):
        if is_order(text):
            yield f"{place}: a standing order"


def is_order(text: str) -> bool:
    """Return whether a text tells an agent how to behave from now on; one word never does."""
    return " " in text and standing_policy(text) is not None


def _claims(checkpoint: Checkpoint) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the notes of a checkpoint in the form in which they are submitted."""
    common: dict[str, object] = {"evidence": {"source": "user", "ref": "task"}}
    for place, (key, fact) in enumerate(checkpoint.facts.items()):
        claim = common | {"kind": "fact", "key": key, "value": fact.value}
        yield f"checkpoint.facts[{place}]", claim
    for place, each in enumerate(checkpoint.decisions):
        claim = common | {
            "kind": "decision",
            "decisionId": each.decision_id,
            "decision": each.decision,
            "rationale": each.rationale,
        }
        more = {"topic": each.topic, "supersedes": each.supersedes}
        claim |= {key: text for key, text in more.items() if text is not None}
        yield f"checkpoint.decisions[{place}]", claim


@frozen
class Import(ImportHead):
    """The record of a session that was made from a pack; `pack_digest` is the file's digest."""

    pack: Pack


stored.register_structure_hook(Pack, lambda value, _kind: _pack_in(orjson.dumps(value)))
stored.register_unstructure_hook(Pack, json_of)


def line_of(made: Import) -> dict[str, Any]:
    """Return the line of a record, with its digest."""
    return stored.unstructure(made)


def import_in(line: object) -> Import | None:
    """Read a line of `imports.jsonl`; None if it is not a record."""
    return read_or_none(stored, line, Import)


@frozen
class ImportedSession:
    """The number of differences on this machine."""

    missing_files: int
    changed_files: int
    suspect_facts: int
    distant_markers: int


def files_of(pack: Pack) -> tuple[str, ...]:
    """Return the files whose hashes on this machine are needed."""
    return tuple(uri for uri, each in pack.checkpoint.artifacts.items() if each.kind == "file")


def seed_of(pack: Pack, hashes: Mapping[str, str]) -> Checkpoint:
    """Return the initial state of the session; `hashes` belong to its files on this machine."""
    claimed = {uri: each.hash for uri, each in pack.checkpoint.artifacts.items()}
    checkpoint, here = pack.checkpoint, _Hashes(hashes)
    task, plan = checkpoint.task, checkpoint.plan
    return Checkpoint(
        checkpoint.seq,
        None if task is None else evolve(task, evidence=here.evidence(task.evidence)),
        evolve(plan, evidence=None if plan.evidence is None else here.evidence(plan.evidence)),
        tuple(evolve(each, evidence=here.evidence(each.evidence)) for each in checkpoint.decisions),
        {uri: here.artifact(each) for uri, each in checkpoint.artifacts.items()},
        {key: here.fact(each) for key, each in checkpoint.facts.items()},
        tuple(uri for uri in checkpoint.recent_artifacts if uri in claimed),
    )


def arrived(pack: Pack, seed: Checkpoint, sessions: Container[str]) -> ImportedSession:
    """Return how many files and facts of a pack are not here, or differ here.

    Markers stay references: those whose turn is in none of the `sessions` of this machine cannot be
    restored (AGN-83).
    """
    pairs = [(each, seed.artifacts[uri]) for uri, each in pack.checkpoint.artifacts.items()]
    files = [(there, here) for there, here in pairs if there.kind == "file"]
    statuses = [status_of(fact, seed.artifacts) for fact in seed.facts.values()]
    return ImportedSession(
        sum(there.hash is not None and here.hash is None for there, here in files),
        sum(
            None not in {there.hash, here.hash} and there.hash != here.hash for there, here in files
        ),
        statuses.count("SUSPECT"),
        sum(each.session_id not in sessions for each in pack.markers),
    )


def marker_lines(pack: Pack, at: str) -> list[dict[str, Any]]:
    """Return the lines of the markers (they refer to the session of their turn) and of the pins."""
    markers = (Marker(**asdict(each, recurse=False)) for each in pack.markers)
    return [*map(created, markers), *(pinned(pin, at) for pin in pack.pins)]


def links_of(made: Import, here: Container[str]) -> Iterator[Link]:
    """Yield the links above a session that was made from a pack, the nearest first.

    Sessions that are `here` keep their own parents (AGN-86).
    """
    source, cut = made.pack.origin.session_id, Cut(operation_id=made.operation_id)
    yield Link(made.session_id, source, "import", cut, made.imported_at)
    for each in made.pack.lineage:
        if each.child in here:
            break
        cut = Cut(turn_id=each.turn_id, checkpoint_id=each.checkpoint_id)
        yield Link(each.child, each.parent, each.kind, cut, each.at)


@frozen
class _Hashes:
    hashes: Mapping[str, str]

    def artifact(self, artifact: Artifact) -> Artifact:
        found = self.hashes.get(artifact.uri) if artifact.kind == "file" else None
        return evolve(artifact, hash=found, seen_hash=None)

    def evidence(self, evidence: Evidence) -> Evidence:
        """Keep a hash that this machine computes too; any other belongs to another machine."""
        found = self.hashes.get(evidence.ref) if evidence.source == "file" else None
        return evolve(evidence, hash=found if found == evidence.hash else None)

    def fact(self, fact: Fact) -> Fact:
        """Return a fact that is SUSPECT until somebody accepts it here (TRU-7).

        An equal file here does not prove a pack's statement about it.
        """
        resting = (each for each in resting_on_evidence(fact).depends_on if each.uri != IMPORTED)
        depends_on = (Dependency(IMPORTED, UNKNOWN_HASH), *map(self._dependency, resting))
        return evolve(fact, evidence=self.evidence(fact.evidence), depends_on=depends_on)

    def _dependency(self, dependency: Dependency) -> Dependency:
        found = self.hashes.get(dependency.uri)
        # Size and time of a file on another machine prove nothing here.
        same = found is not None and found == dependency.hash and not found.startswith(WEAK)
        return Dependency(dependency.uri, found if same else UNKNOWN_HASH)
