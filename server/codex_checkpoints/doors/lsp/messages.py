"""Checks each JSON-RPC message before pygls handles it.

pygls answers an unexpected message with a traceback, with a pop-up, or not at all, and it serves
documents and commands that we do not have.  Here such a message is refused: one that is not
JSON-RPC, one that the client may not send yet or any more, and a method that is not ours.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Literal

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from codex_checkpoints.core.fields import Json, is_object
from codex_checkpoints.doors import protocol

logger = logging.getLogger(__name__)

_SERVED = frozenset(
    {
        types.INITIALIZE,
        types.INITIALIZED,
        types.SHUTDOWN,
        types.EXIT,
        types.CANCEL_REQUEST,
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
        *(method.name for method in protocol.METHODS),
    }
)
_KEYS = ("jsonrpc", "id", "method", "params", "result", "error")


class Protocol(LanguageServerProtocol):
    """The protocol of pygls for well-formed messages, in the order of the life cycle."""

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        """Wait for `initialize`."""
        super().__init__(server, converter)
        self._stage: Literal["new", "ready", "ended"] = "new"

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return an object unchanged: pygls asks for those in params, too, before the message."""
        return data

    def handle_message(self, message: Any) -> None:
        """Handle a message, or refuse it; a bad response or notification is dropped."""
        try:
            _check_form(message)
            known = {key: message[key] for key in _KEYS if key in message}
            if "method" in known:
                self._check_method(known["method"])
            if known.get("method") == types.INITIALIZE:
                known["params"] = _used_of(known.get("params"))
            structured: Any = super().structure_message(known)
        except JsonRpcException as error:
            if _expects_answer(message):
                self.refuse(error, _id_of(message))
            else:
                logger.debug("dropping a message: %s", error.message)
            return
        if known.get("method") == types.INITIALIZE:
            self._stage = "ready"
        elif known.get("method") == types.SHUTDOWN:
            self._stage = "ended"
        super().handle_message(structured)

    def refuse(self, error: JsonRpcException, number: int | str | None = None) -> None:
        """Send an error for the request with this id; None if its id is not known."""
        fault = {"code": error.code, "message": error.message, "data": error.data}
        body = json.dumps({"jsonrpc": self.VERSION, "id": number, "error": fault}).encode()
        if self.writer is not None:
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def refuse_bytes(self) -> None:
        """Send the error for bytes that are not JSON."""
        self.refuse(JsonRpcParseError("the message is not JSON"))

    def _check_method(self, method: str) -> None:
        if method == types.EXIT:
            return
        if self._stage == "ended":
            raise JsonRpcRequestCancelled("the server is shutting down")
        if (self._stage == "new") is not (method == types.INITIALIZE):
            if self._stage == "ready":
                raise JsonRpcInvalidRequest("the server is initialized already")
            data: dict[str, object] = {"code": "not_initialized", "facts": {}}
            raise JsonRpcServerNotInitialized("the server is not initialized", data=data)
        if method not in _SERVED:
            raise JsonRpcMethodNotFound.of(method[:200])


def _check_form(message: object) -> None:
    """Raise `JsonRpcInvalidRequest` for a message that is not one of JSON-RPC."""
    if not is_object(message):
        raise JsonRpcInvalidRequest("a message is an object; a batch is not supported")
    if message.get("jsonrpc") != LanguageServerProtocol.VERSION:
        raise JsonRpcInvalidRequest('"jsonrpc" must be "2.0"')
    if "id" in message and _id_of(message) is None:
        raise JsonRpcInvalidRequest("an id is a string or a whole number")
    if "method" not in message and not _is_response(message):
        raise JsonRpcInvalidRequest("a message has a method, a result or an error")
    if not isinstance(message.get("method", ""), str):
        raise JsonRpcInvalidRequest("a method is a string")


def _used_of(params: object) -> dict[str, object]:
    """Return the used params of `initialize`; pygls fails at some forms of the others."""
    if not is_object(params):
        raise JsonRpcInvalidParams("the params of `initialize` are an object")
    options = params.get("initializationOptions")
    unused: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    return {**unused, "initializationOptions": options}


def _id_of(message: object) -> int | str | None:
    number = message.get("id") if is_object(message) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _is_response(message: Json) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _expects_answer(message: object) -> bool:
    """Return whether a message is a request, or so odd that it may have been one."""
    if not is_object(message):
        return True
    return not _is_response(message) and ("id" in message or "method" not in message)
