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
    """A message that is answered with a JSON-RPC error; `id` is known where its sender may wait."""

    def __init__(self, code: int, message: str, number: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = number


@frozen
class Request:
    """A message that needs an answer."""

    id: Id
    method: str
    params: Json


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


def request_of(value: object) -> Request | None:
    """Read a JSON value as a request; raises `Failure`.

    None is a notification, or an answer to a request, of which we send none.
    """
    if not is_object(value):
        raise Failure(INVALID_REQUEST, "a message is a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    number, method, params = value.get("id"), value.get("method"), value.get("params", {})
    known = number if isinstance(number, str) or type(number) is int else None
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise Failure(INVALID_REQUEST, "a message has jsonrpc 2.0 and a method", known)
    if "id" not in value:
        return None
    if known is None:
        raise Failure(INVALID_REQUEST, "an id is a text or a whole number")
    if not is_object(params):
        raise Failure(INVALID_PARAMS, "params are an object", known)
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
