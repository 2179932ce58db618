"""The language server for editors, over stdio.

`app` runs the operation of each request.  Params stay raw until they are structured here, since
pygls leaves a request with params of a wrong shape without an answer.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcRequestCancelled,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage

from codex_checkpoints import __version__, wire
from codex_checkpoints.doors import protocol
from codex_checkpoints.doors.lsp import loopback
from codex_checkpoints.doors.lsp.app import App
from codex_checkpoints.doors.lsp.messages import Protocol
from codex_checkpoints.doors.pages.log import LogLine
from codex_checkpoints.places import Places
from codex_checkpoints.sections.refusals import sentence_of
from codex_checkpoints.service.refusal import Cancelled, Refusal

logger = logging.getLogger(__name__)


def make_server(where: Places) -> tuple[LanguageServer, App]:
    """Build the server; it registers exactly the methods of `protocol`."""
    server = _Server(
        "codex-checkpoints",
        __version__,
        text_document_sync_kind=types.TextDocumentSyncKind.None_,
        protocol_cls=Protocol,
        converter_factory=wire_converter,
    )
    app = App(server, where)

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        app.configure(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        await app.begin()

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: Any) -> None:
        await app.end()

    for method in protocol.METHODS:
        server.feature(method.name)(_answering(method, app))
    return server, app


class _Server(LanguageServer):
    """A server that logs unanswerable messages, instead of showing them to the user."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        if source is JsonRpcException:  # the bytes were not a message
            cast("Protocol", self.protocol).refuse_bytes()
        expected = isinstance(error, JsonRpcException)
        if expected and not isinstance(error, JsonRpcInternalError):
            return  # a refusal is an answer, not a fault
        logger.error("%s: %s", getattr(source, "__name__", source), type(error).__name__)


def _answering(method: protocol.Method, app: App) -> Callable[[Any], Awaitable[Any]]:
    """Return the handler of a method: structure the params, answer, translate refusals."""

    async def receive(raw: Any) -> Any:  # `Any`: pygls would pass the server for an `object`
        try:
            return await app.answer(method, wire.structure(raw, method.params))
        except wire.BadParams as error:
            data = {"code": "invalid_payload", "facts": {"problems": error.problems}}
            raise JsonRpcInvalidParams("params do not fit", data=data) from None
        except Cancelled:
            raise JsonRpcRequestCancelled("it was called off, or the server ends") from None
        except Refusal as refusal:
            data = {"code": refusal.code, "facts": dict(refusal.facts)}
            raise JsonRpcException(sentence_of(refusal), protocol.REFUSED, data) from None
        except Exception as error:
            # A traceback would carry paths of this machine to the client.
            logger.exception("%s failed", method.name)
            message = f"{method.name} failed: {type(error).__name__}"
            raise JsonRpcException(message, -32603, {"code": "internal", "facts": {}}) from None

    return receive


def wire_converter() -> Converter:
    """Return pygls' converter with our records added and params left raw."""
    converter = wire.add_hooks(converters.get_converter())

    def envelope(message: dict[str, Any], cls: type[Any]) -> Any:
        return cls(**{"params": None, **message})

    def answer(message: dict[str, Any], cls: type[Any]) -> Any:
        return cls(**message)

    converter.register_structure_hook(JsonRPCRequestMessage, envelope)
    converter.register_structure_hook(JsonRPCNotification, envelope)
    converter.register_structure_hook(JsonRPCResponseMessage, answer)
    return converter


def serve(where: Places, *, tcp: int | None = None) -> None:
    """Answer until the client leaves; everything else goes to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for chatty in ("pygls", "asyncio"):
        # At INFO pygls logs whole messages, and those may hold prompts.
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    server, app = make_server(where)
    try:
        if tcp is not None:
            with loopback.client(tcp) as (reader, writer):
                server.start_io(reader, writer)
        else:
            stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
            sys.stdout = sys.stderr  # a stray print must not reach the client
            server.start_io(stdin, stdout)
    finally:
        app.close()
