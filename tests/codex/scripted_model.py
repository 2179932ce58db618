"""A model that follows a script: the Responses API with SSE on 127.0.0.1.

A script is a list of answers; each request that Codex sends takes the next one. Every request is
recorded. An answer can be held back, so that a test can look around while Codex waits for it.
Compaction requests are told apart and answered from a list of summaries of their own: a text, which
a service that compacts by itself is made to encrypt, or an answer that can be held back.
Standard library only, no knowledge of Codex's files.
"""

import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Item: TypeAlias = "Mapping[str, Json]"

MAX_REQUESTS = 100
"""A runaway client gets 503 from here on."""

MAX_HOLD = 60.0
"""Seconds that a held answer waits for its test before the request fails."""

_SUMMARY_REQUEST = "context checkpoint compaction"
_DELTA = 64


# What the model can do -----------------------------------------------------------------------


def say(text: str) -> Item:
    """Answer with a message."""
    content: list[Json] = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def call(name: str, arguments: Mapping[str, Json], call_id: str, namespace: str = "") -> Item:
    """Call any function tool."""
    item: dict[str, Json] = {
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(dict(arguments)),
    }
    return item | {"namespace": namespace} if namespace else item


def shell(command: str, call_id: str, **more: Json) -> Item:
    """Run a shell command."""
    return call("exec_command", {"cmd": command, **more}, call_id)


def update_plan(steps: Sequence[tuple[str, str]], call_id: str) -> Item:
    """Write the plan: pairs of text and status."""
    plan: list[Json] = [{"step": text, "status": status} for text, status in steps]
    return call("update_plan", {"plan": plan}, call_id)


def apply_patch(patch: str, call_id: str) -> Item:
    """Change files."""
    return _custom("apply_patch", patch, call_id)


def script(source: str, call_id: str) -> Item:
    """Run JavaScript that calls tools (code mode)."""
    return _custom("exec", source, call_id)


def _custom(name: str, text: str, call_id: str) -> Item:
    return {
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "input": text,
    }


# The script ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """The tokens that an answer claims to have cost."""

    input: int = 1000
    output: int = 50
    cached: int = 0

    def wire(self) -> dict[str, Json]:
        """Write it as the API does."""
        return {
            "input_tokens": self.input,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.input + self.output,
        }


class Answer:
    """One answer of the model; `held` makes it wait until the test lets it go.

    `to` reserves it for requests in which the user said exactly that (a sub-agent's, for example).
    `counted`: it costs what its request and its items take, see `Request.tokens`.
    `error`: the status and the error of a request that fails, in place of items.
    """

    def __init__(
        self,
        *items: Item,
        usage: Usage | None = None,
        held: bool = False,
        to: str = "",
        counted: bool = False,
        error: tuple[int, Mapping[str, Json]] | None = None,
    ) -> None:
        self.items = items
        self.error = error
        self.usage = usage or Usage()
        self.counted = counted
        self.to = to
        self._asked = threading.Event()
        self._go = threading.Event()
        if not held:
            self._go.set()

    def wait_until_asked(self, within: float = 30.0) -> None:
        """Wait until Codex has sent the request that this answers."""
        if not self._asked.wait(within):
            message = f"no request for this answer within {within} s: {self.items}"
            raise TimeoutError(message)

    @property
    def is_released(self) -> bool:
        """Whether it is given as soon as it is asked for."""
        return self._go.is_set()

    def release(self) -> None:
        """Let a held answer go."""
        self._go.set()

    def cost(self, request: "Request") -> Usage:
        """Return the tokens that it claims to have cost."""
        if not self.counted:
            return self.usage
        return Usage(request.tokens, _tokens(list(map(dict, self.items))))

    def take(self) -> bool:
        """Note that a request is here and wait for the release; false if that never came."""
        self._asked.set()
        return self._go.wait(MAX_HOLD)


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    body: dict[str, Json] = field(default_factory=dict[str, Json])
    compaction: bool = False

    @property
    def tokens(self) -> int:
        """How large it is for a model: a quarter of the bytes of instructions, tools and items."""
        return sum(_tokens(self.body.get(part)) for part in ("instructions", "tools", "input"))

    @property
    def input(self) -> list[dict[str, Json]]:
        """The items of the history that was sent."""
        items = self.body.get("input")
        if not isinstance(items, list):
            return []
        return [item for item in items if isinstance(item, dict)]

    def texts(self, role: str) -> list[str]:
        """The texts of the messages of one role."""
        return [text_of(item) for item in self.input if item.get("role") == role]


def _tokens(value: Json) -> int:
    return -(-len(json.dumps(value, ensure_ascii=False).encode()) // 4)


def text_of(item: Mapping[str, Json]) -> str:
    """Join the text parts of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


class ScriptedModel:
    """The server: `with ScriptedModel(answers) as model: … model.base_url …`."""

    def __init__(self, answers: Iterable[Answer], summaries: Iterable[str | Answer] = ()) -> None:
        self.requests: list[Request] = []
        self.unscripted: list[Request] = []
        self._answers = list(answers)
        self.script = list(self._answers)
        self._summaries = list(summaries)
        self.script += [each for each in self._summaries if isinstance(each, Answer)]
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def base_url(self) -> str:
        """Where Codex is pointed at."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def turns(self) -> list[Request]:
        """The requests for an answer, without compactions and look-ups."""
        return [r for r in self.requests if r.path.endswith("/responses") and not r.compaction]

    @property
    def compactions(self) -> list[Request]:
        """The requests for a summary."""
        return [r for r in self.requests if r.compaction]

    def add(self, *answers: Answer) -> None:
        """Go on with the script."""
        with self._lock:
            self._answers.extend(answers)
            self.script.extend(answers)

    def record(self, request: Request) -> bool:
        """Keep a request; false when there were too many."""
        with self._lock:
            self.requests.append(request)
            return len(self.requests) <= MAX_REQUESTS

    def next_answer(self, request: Request) -> Answer | None:
        """Take the next answer of the script that fits the request."""
        said = request.texts("user")
        with self._lock:
            fitting = [a for a in self._answers if a.to and a.to in said]
            fitting = fitting or [a for a in self._answers if not a.to]
            if fitting:
                self._answers.remove(fitting[0])
                return fitting[0]
            self.unscripted.append(request)
            return None

    def next_summary(self) -> str | Answer | None:
        """Take the next summary."""
        with self._lock:
            return self._summaries.pop(0) if self._summaries else None

    def with_id(self, item: Item) -> dict[str, Json]:
        """Give an item an id of its own."""
        prefix = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
        kind = prefix.get(str(item["type"]), "item")
        return {**item, "id": f"{kind}_scripted{next(self._ids):06d}"}

    def close(self) -> None:
        """Let go of whatever is held and stop listening."""
        for answer in self.script:
            answer.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# HTTP ----------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def model(self) -> ScriptedModel:
        return cast("_Server", self.server).model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        """Keep quiet."""

    def do_GET(self) -> None:
        if not self.model.record(Request("GET", self.path)):
            self._send(503, _TOO_MANY)
        elif self.path.split("?")[0].endswith("/models"):
            self._send(200, {"object": "list", "data": [], "models": []})
        else:
            self._send(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = cast("dict[str, Json]", json.loads(raw or b"{}"))
        path = self.path.split("?")[0]
        request = Request("POST", path, body, compaction=_asks_for_a_summary(body))
        if not self.model.record(request):
            self._send(503, _TOO_MANY)
        elif not path.endswith("/responses"):
            self._send(404, {"error": {"message": "not here"}})
        elif request.compaction:
            self._summarise(request)
        else:
            self._answer(request)

    def _summarise(self, request: Request) -> None:
        match self.model.next_summary():
            case None:
                self._refuse("the script has no summary left")
            case Answer() as answer:
                self._give(answer, request)
            case str() as text if _is_by_a_service(request.body):
                self._stream(({"type": "compaction", "encrypted_content": text},), Usage())
            case str() as text:
                self._stream((say(text),), Usage())

    def _answer(self, request: Request) -> None:
        answer = self.model.next_answer(request)
        if answer is None:
            self._refuse("the script has no answer left")
        else:
            self._give(answer, request)

    def _give(self, answer: Answer, request: Request) -> None:
        if not answer.take():
            self._send(503, {"error": {"message": "the test never released this answer"}})
        elif answer.error is not None:
            status, error = answer.error
            self._send(status, {"error": dict(error)})
        else:
            self._stream(answer.items, answer.cost(request))

    def _refuse(self, message: str) -> None:
        self._send(400, {"error": {"message": message, "type": "invalid_request_error"}})

    def _send(self, status: int, document: dict[str, Json]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, items: Iterable[Item], usage: Usage) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        try:
            self.end_headers()
            named = [self.model.with_id(item) for item in items]
            for event in _events(f"resp_{next(_RESPONSES):06d}", named, usage):
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:  # an interrupted turn hangs up
            self.close_connection = True


_RESPONSES = itertools.count(1)
_TOO_MANY: dict[str, Json] = {"error": {"message": "too many requests for a test"}}


def _events(
    response: str, items: Sequence[dict[str, Json]], usage: Usage
) -> Iterator[dict[str, Json]]:
    yield {"type": "response.created", "response": {"id": response}}
    for index, item in enumerate(items):
        if item["type"] == "message":
            yield from _deltas(index, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    done: dict[str, Json] = {"id": response, "usage": usage.wire()}
    yield {"type": "response.completed", "response": done}


def _deltas(index: int, message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    begun: dict[str, Json] = {**message, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    text = text_of(message)
    for start in range(0, len(text), _DELTA):
        yield {
            "type": "response.output_text.delta",
            "item_id": message["id"],
            "output_index": index,
            "content_index": 0,
            "delta": text[start : start + _DELTA],
        }


def _asks_for_a_summary(body: dict[str, Json]) -> bool:
    said = Request("POST", "", body).texts("user")
    return _is_by_a_service(body) or (bool(said) and _SUMMARY_REQUEST in said[-1].lower())


def _is_by_a_service(body: dict[str, Json]) -> bool:
    """Is the service that was asked to compact by itself, and to encrypt what it made?"""
    items = Request("POST", "", body).input
    return any(item.get("type") == "compaction_trigger" for item in items)
