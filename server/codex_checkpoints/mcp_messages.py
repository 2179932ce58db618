"""JSON-RPC 2.0 as the stdio transport of MCP has it: a message a line, in UTF-8.

Codex waits for the start of `mcp`, so little is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TypeGuard

import orjson

from codex_checkpoints.values import frozen

MAX_LINE = 1 << 20
"""Bytes of a line, without its end; a longer one is refused."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = str | int
Json = Mapping[str, object]


class Failure(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@frozen
class Request:
    """A message that needs an answer."""

    id: Id
    method: str
    params: Json


@frozen
class Malformed:
    """An invalid message; `id` is known where the sender may wait for an answer."""

    id: Id | None
    code: int
    message: str


Message = Request | Malformed | None
"""None is a notification, or an answer to a request, of which we send none."""


def next_line(stream: IO[bytes]) -> bytes:
    """Return the next line that is not blank, at most `MAX_LINE` + 1 bytes; empty at the end.

    The rest of a longer line is skipped; `value_of` refuses its beginning.
    """
    line = stream.readline(MAX_LINE + 1)
    while line.isspace():
        line = stream.readline(MAX_LINE + 1)
    rest = line
    while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
        rest = stream.readline(MAX_LINE + 1)
    return line


def value_of(line: bytes) -> object:
    """Return the JSON value of a line; raises `Failure`."""
    if len(line) > MAX_LINE and not line.endswith(b"\n"):
        raise Failure(INVALID_REQUEST, f"a message has at most {MAX_LINE} bytes")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise Failure(PARSE_ERROR, "the line is no JSON") from None


def message_of(value: object) -> Message:
    """Read a JSON value as a message."""
    if not is_object(value):
        return Malformed(None, INVALID_REQUEST, "a message is a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    number, method, params = value.get("id"), value.get("method"), value.get("params", {})
    known = number if _is_id(number) else None
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str):
        return Malformed(known, INVALID_REQUEST, "a message has jsonrpc 2.0 and a method")
    if "id" not in value:
        return None
    if known is None:
        return Malformed(None, INVALID_REQUEST, "an id is a text or a whole number")
    if not is_object(params):
        return Malformed(known, INVALID_PARAMS, "params are an object")
    return Request(known, method, params)


def answer(number: Id, result: Json) -> bytes:
    """Return the answer to a request; raises `TypeError` if it is no JSON."""
    return orjson.dumps({"jsonrpc": "2.0", "id": number, "result": result})


def error(number: Id | None, code: int, message: str) -> bytes:
    """Return an error as an answer, to the request with this id if it is known."""
    failed = {"code": code, "message": message}
    return orjson.dumps({"jsonrpc": "2.0", "id": number, "error": failed})


def is_object(value: object) -> TypeGuard[Json]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def _is_id(value: object) -> TypeGuard[Id]:
    return isinstance(value, str) or type(value) is int
