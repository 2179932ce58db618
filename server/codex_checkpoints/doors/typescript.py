"""Turns `protocol` into `client/protocol.ts`, limits into `limits.ts`, words into `words.ts`.

    python -m codex_checkpoints.doors.typescript           write the files
    python -m codex_checkpoints.doors.typescript --check   compare; fail on a difference

Every field is always sent, so none is optional.  Only the kinds of types that `protocol` uses are
supported.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import attrs

from codex_checkpoints.core.checkpoint import anchors
from codex_checkpoints.core.checkpoint.note_schema import MAX_NAME
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Evidence
from codex_checkpoints.core.compaction.token_budget import Chunk
from codex_checkpoints.core.converters import camel
from codex_checkpoints.core.restore.pack import DEFAULT_WINDOW, MAX_WINDOW
from codex_checkpoints.doors import protocol
from codex_checkpoints.doors.protocol import METHODS
from codex_checkpoints.operations import services
from codex_checkpoints.sections import connect, previews
from codex_checkpoints.service import doctor
from codex_checkpoints.service.connect import status
from codex_checkpoints.service.history.digests import MOST_TOKENS

_MODULES = {each.run.__module__: import_module(each.run.__module__) for each in METHODS}
_FOUND: dict[str, Any] = {
    **{
        name: found for each in (services, *_MODULES.values()) for name, found in vars(each).items()
    },
    "ConnectChange": status.Done,
    "ConnectDoor": status.Door,
    "ConnectFailure": status.Failure,
    "ConnectHook": status.HookState,
    "DoctorFinding": doctor.Finding,
    "NoteDependency": anchors.Rest,
    "NoteEvidence": Evidence,
    "OutlineChunk": Chunk,
}
_NAMES: dict[object, str] = {found: name for name, found in _FOUND.items() if attrs.has(found)}


def parts_of(kind: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Yield a type and its parts."""
    yield kind
    for inner in get_args(kind):
        yield from parts_of(inner)


def _with_parts(record: type) -> Iterator[tuple[str, type]]:
    for kind in get_type_hints(record).values():
        for part in filter(attrs.has, parts_of(kind)):
            yield from _with_parts(part)
    yield _NAMES.setdefault(record, record.__name__), record


_USED = (
    *(record for each in METHODS for record in (each.params, each.result)),
    *(each.params for each in protocol.EVENTS),
    services.InitializationOptions,
)
RECORDS: dict[str, type] = dict(found for record in _USED for found in _with_parts(record))
"""Every record by its name on the wire, after its parts.

A record with another name on the wire has that name here, or where its operations import it.
"""

TARGET = Path(__file__).resolve().parents[3] / "extension" / "src" / "client" / "protocol.ts"
LIMITS = TARGET.with_name("limits.ts")
WORDS = TARGET.with_name("words.ts")

_PREVIEWS = {
    "MODES": "The modes of a restore.",
    "MODE_EFFECTS": "What a restore in a mode gives the model.",
    "HARD_LIMIT": "What a restore with an empty context cannot give.",
    "SCOPES": "The parts that a restore can bring back.",
    "SCOPE_EFFECTS": "What a restore of these parts writes.",
    "PACK_PARTS": "The parts of a state pack.",
    "PACK_ITEMS": "The kinds of items in a pack, by part and kind.",
    "FILE_NOTES": "The state of a file since the marker, by the code of a warning.",
    "TOO_LONG": "What the list of shortened items says.",
    "NOT_AS_THEN": "The heading of the files that differ.",
    "DIGEST_SECTIONS": "The title of a digest's section, and the nouns for one line and several.",
    "REPLACEMENT": "What the preview of a compaction shows.",
    "NEVER_PUSHED": "The data that no push sends.",
    "LEFT_OUT": "The nouns for one and several parts that a push leaves out.",
    "NOTHING_REDACTED": "What a push without redactions says.",
    "NOTHING_NEW": "What a push says that has nothing to send.",
}

_HEAD = """\
// Written by `python -m codex_checkpoints.doors.typescript` from its doors/protocol.py.
// Do not edit: change that package and run the command again.

import { NotificationType } from "vscode-jsonrpc";
"""
_SIMPLE: dict[object, str] = {
    str: "string",
    int: "number",
    bool: "boolean",
    type(None): "null",
    Any: "unknown",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or compare them with the new text."""
    parser = argparse.ArgumentParser(description="Turn the protocol into protocol.ts.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args(arguments).check:
        complaint = difference()
        sys.stdout.write(complaint)
        return 1 if complaint else 0
    for path, text in _files():
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


def difference() -> str:
    """Return the difference between the files and the new text; empty if there is none."""
    lines: list[str] = []
    for path, text in _files():
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        old, new = (each.splitlines(keepends=True) for each in (there, text))
        lines += difflib.unified_diff(
            old, new, f"extension/src/client/{path.name}", "what the server says"
        )
    return "".join(lines)


def _files() -> tuple[tuple[Path, str], ...]:
    return (TARGET, generate()), (LIMITS, limits()), (WORDS, words())


def words() -> str:
    """Return the TypeScript of the words that a view of the editor shares with a page."""

    def record(name: str, doc: str, texts: Mapping[str, str]) -> str:
        lines = "".join(f"  {key}: {json.dumps(text)},\n" for key, text in texts.items())
        return f"\n/** {doc} */\nexport const {name} = {{\n{lines}}} as const;\n"

    def value(name: str, doc: str, what: object) -> str:
        text = json.dumps(what, ensure_ascii=False, indent=2)
        text = re.sub(r'^( *)"(\w+)":', r"\1\2:", text, flags=re.MULTILINE)
        return f"\n/** {doc} */\nexport const {name} = {text} as const;\n"

    return (
        "// Written by `python -m codex_checkpoints.doors.typescript` from sections/connect.py\n"
        "// and sections/previews.py.\n"
        + record("DOORS", "The ways in which Codex calls this extension.", connect.DOORS)
        + record("DOOR_PROBLEMS", "The problems of such a way.", connect.DOOR_PROBLEMS)
        + record("CODEX_PROBLEMS", "The problems of Codex itself.", connect.CODEX_PROBLEMS)
        + record("TRUST", "The trust of a user in a hook.", connect.TRUST)
        + f"\nexport const NEVER_RAN = {json.dumps(connect.NEVER_RAN)};\n"
        + f"export const LAST_RAN = {json.dumps(connect.LAST_RAN)};\n"
        + "".join(value(name, doc, getattr(previews, name)) for name, doc in _PREVIEWS.items())
    )


def limits() -> str:
    """Return the TypeScript of the limits that a form shows before it sends anything.

    A file of its own, without an import: the pages in the browser need it too.
    """
    return (
        "// Written by `python -m codex_checkpoints.doors.typescript` from the server's limits.\n\n"
        "/** Maximum code points of a name, a label or a reason; the server cuts longer ones. */\n"
        f"export const MAX_LABEL = {MAX_VALUE_CHARS};\n\n"
        "/** Maximum code points of a fact's key. */\n"
        f"export const MAX_KEY = {MAX_NAME};\n\n"
        "/** Maximum number of the user's last messages in a pack. */\n"
        f"export const MAX_MESSAGES = {MAX_WINDOW};\n\n"
        "/** Default number of the user's last messages in a pack. */\n"
        f"export const DEFAULT_MESSAGES = {DEFAULT_WINDOW};\n\n"
        "/** Maximum number of tokens in a digest. */\n"
        f"export const MAX_DIGEST = {MOST_TOKENS};\n"
    )


def generate() -> str:
    """Return the whole TypeScript file."""
    records = (_interface(name, record) for name, record in RECORDS.items())
    parts = [_HEAD, *records, _codes(), _requests()]
    return "\n".join([*parts, *map(_notification, protocol.EVENTS)])


def _interface(name: str, record: type[attrs.AttrsInstance]) -> str:
    attrs.resolve_types(record)
    fields = "\n".join(
        f"  readonly {camel(field.name)}: {_type(field.type)};" for field in attrs.fields(record)
    )
    body = f"{{\n{fields}\n}}" if fields else "{}"
    keyword = f"interface {name} {body}"
    if not fields:
        # An empty interface would admit everything.
        keyword = f"type {name} = Readonly<Record<string, never>>;"
    return f"{_comment(record.__doc__)}export {keyword}\n"


def _type(kind: object) -> str:
    """Return a type in TypeScript's words."""
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if isinstance(kind, type) and attrs.has(kind):
        return _NAMES[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {types.UnionType, Union}:
        return " | ".join(map(_type, inner))
    if origin is Literal:
        return _SIMPLE[type(cast("object", inner[0]))]
    if origin is tuple and inner[1:] == (...,):
        item = _type(inner[0])
        is_compound = " | " in item or item.startswith("readonly ")
        return f"readonly ({item})[]" if is_compound else f"readonly {item}[]"
    if origin in {dict, Mapping}:
        return f"Readonly<Record<string, {_type(inner[1])}>>"
    raise TypeError(f"no TypeScript for {kind!r}")


def _codes() -> str:
    codes = "\n".join(f'  | "{code}"' for code in protocol.CODES)
    return (
        "/** The error code of every refusal; its `data` is a `Refused`. */\n"
        f"export const REFUSED = {protocol.REFUSED};\n\n"
        "/** The refusal codes in use. */\n"
        f"export type RefusalCode =\n{codes};\n\n"
        "/** What a refusal carries: its code, and facts that a caller may act on. */\n"
        "export interface Refused {\n"
        "  readonly code: RefusalCode;\n"
        "  readonly facts: Readonly<Record<string, unknown>>;\n"
        "}\n"
    )


def _requests() -> str:
    pairs = "\n".join(
        f'  readonly "{each.name}": [{_NAMES[each.params]}, {_NAMES[each.result]}];'
        for each in protocol.METHODS
    )
    return (
        "/** What is asked for by each method, and what is answered. */\n"
        f"export interface Methods {{\n{pairs}\n}}\n"
    )


def _notification(event: protocol.Event) -> str:
    name = event.name.partition("/")[2]
    head = f"export const {name.capitalize()}Notification"
    return f'{head} = new NotificationType<{_NAMES[event.params]}>("{event.name}");\n'


def _comment(docstring: str | None) -> str:
    lines = [line.strip() for line in (docstring or "").strip().splitlines()]
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    body = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/**\n{body}\n */\n"


if __name__ == "__main__":
    sys.exit(main())
