"""A small language for rollouts: a test names the events, this writes Codex's lines.

    rollout(session(), turn(user("why does login fail?"), shell("cat auth.py", reads=["auth.py"])))

Each word is a step that writes one line or several, in the form that `session` chose: `paginated`
(ordinals and items), `legacy` (events) or `bare` (the oldest).  Keys stand in the order in which
Codex writes them.  Nothing is random: calls are `c1`, `c2`, …, turns `t1`, …, messages `u1`, …,
and a second passes from line to line.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

Form = Literal["paginated", "legacy", "bare"]
Json = Mapping[str, object]

THREAD = "01a1f865-0000-7000-8000-000000000001"
FOLDER = "/home/ana/shop"
WINDOW = 258_400
_BEGIN = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)

SUMMARY_OF_CODEX = "Another language model started to solve"
"""How a summary that Codex wrote by itself begins."""


class Writer:
    """The file as it grows, and what the next line needs to know of it."""

    def __init__(self) -> None:
        self.data = b""
        self.form: Form = "paginated"
        self.events: bool = True
        self.folder: str | None = FOLDER
        self.thread: str = THREAD
        self.task: str | None = None
        self.next_ordinal: int = 0
        self._written: int = 0
        self._counts: dict[str, int] = {}

    def name(self, letter: str, given: str | None = None) -> str:
        """Name the next call, turn or message, unless it has a name already."""
        self._counts[letter] = self._counts.get(letter, 0) + 1
        return given or f"{letter}{self._counts[letter]}"

    def write(self, data: bytes) -> None:
        """Append bytes; like Codex, first end a line that was torn."""
        if self.data and not self.data.endswith(b"\n"):
            self.data += b"\n"
        self.data += data

    def record(self, kind: str, payload: object) -> None:
        """Write one line with its envelope."""
        envelope: dict[str, object] = {"timestamp": self._now()}
        if self.form == "paginated":
            envelope["ordinal"] = self.next_ordinal
            self.next_ordinal += 1
        self.write(to_line(envelope | {"type": kind, "payload": payload}))

    def response(self, kind: str, /, **fields: object) -> None:
        """Write one item of the model's history."""
        if self.form == "bare":
            self.write(to_line({"type": kind, **fields}))
        else:
            self.record("response_item", {"type": kind, **fields})

    def event(self, kind: str, /, **fields: object) -> None:
        """Write one event, where the form has events."""
        if self.form != "bare" and self.events:
            self.record("event_msg", {"type": kind, **fields})

    def item(self, kind: str, turn: str | None, /, **fields: object) -> None:
        """Write one item that tells what happened, where the form has such."""
        if self.form == "paginated":
            self.event(
                "item_completed",
                thread_id=self.thread,
                turn_id=turn or self.task,
                item={"type": kind, **fields},
                completed_at_ms=1_795_168_800_000 + 1000 * self._written,
            )

    def message(self, role: str, texts: Sequence[str]) -> None:
        """Write one message of the model's history."""
        part = "output_text" if role == "assistant" else "input_text"
        content = [{"type": part, "text": text} for text in texts]
        self.response("message", role=role, content=content)

    def _now(self) -> str:
        now = _BEGIN + timedelta(seconds=self._written)
        self._written += 1
        return now.strftime("%Y-%m-%dT%H:%M:%S.000Z")


Step = Callable[[Writer], None]


def to_line(value: object) -> bytes:
    """Write JSON as Codex does; half a surrogate pair only exists as an escape."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def rollout(*steps: Step) -> bytes:
    """Write a whole file."""
    writer = Writer()
    for step in steps:
        step(writer)
    return writer.data


def several(*steps: Step) -> Step:
    """Take several steps for one."""

    def write(writer: Writer) -> None:
        for step in steps:
            step(writer)

    return write


# --- the file and its turns ----------------------------------------------------------------------


def session(
    form: Form = "paginated",
    *,
    thread: str = THREAD,
    cwd: str | None = FOLDER,
    events: bool = True,
    **more: object,
) -> Step:
    """Begin a file; without `events` a legacy one has nothing but the model's history.

    `more` are further fields of the head.  Where it names a `history_base`, the file's own
    ordinals go on from there.
    """

    def write(writer: Writer) -> None:
        writer.form, writer.events, writer.thread, writer.folder = form, events, thread, cwd
        if form == "bare":
            head = {"id": thread, "timestamp": "2025-08-20T10:00:00.000Z", "instructions": None}
            writer.write(to_line(head))
            return
        base = more.get("history_base")
        if isinstance(base, Mapping):
            writer.next_ordinal = base["end_ordinal_exclusive"]
        writer.record(
            "session_meta",
            {"session_id": thread, "id": thread, "timestamp": "2026-11-20T10:00:00.000Z"}
            | ({} if cwd is None else {"cwd": cwd})
            | {"originator": "codex_cli_rs", "cli_version": "0.169.0", "source": "cli"}
            | {"model_provider": "openai", "history_mode": form}
            | more,
        )

    return write


def based_on(rollout_id: str, ordinal: int, offset: int) -> dict[str, object]:
    """Point to the beginning of another file, for `session(history_base=…)`."""
    return {
        "thread_id": rollout_id,
        "end_ordinal_exclusive": ordinal,
        "end_byte_offset": offset,
    }


def turn(*steps: Step, name: str | None = None) -> Step:
    """Take steps as one task, from its start to its end."""
    return several(started(name), *steps, complete())


def started(
    name: str | None = None, *, parent: str | None = None, trigger: str | None = None
) -> Step:
    """Begin a task, perhaps as a part of another turn, or because something triggered it."""

    def write(writer: Writer) -> None:
        writer.task = writer.name("t", name)
        by = {"turn_id": writer.task, "turn_trigger": trigger, "parent_turn_id": parent}
        attribution = {"turn_attribution": by} if parent or trigger is not None else {}
        begun = {"turn_id": writer.task, "model_context_window": WINDOW}
        writer.event("task_started", **attribution, **begun)

    return write


def complete(
    name: str | None = None, *, said: str | None = None, error: Json | None = None
) -> Step:
    """End a task, with its last answer or an error if Codex recorded them."""

    def write(writer: Writer) -> None:
        ended = name or writer.task
        more = {} if error is None else {"error": error}
        writer.event("task_complete", turn_id=ended, last_agent_message=said, **more)
        writer.task = None if ended == writer.task else writer.task

    return write


def aborted(name: str | None = None) -> Step:
    """End a task because the user interrupted it."""

    def write(writer: Writer) -> None:
        ended = name or writer.task
        writer.event("turn_aborted", turn_id=ended, reason="interrupted")
        writer.task = None if ended == writer.task else writer.task

    return write


def turn_context(cwd: str | None = None, model: str = "gpt-5.5") -> Step:
    """State the settings of a turn."""

    def write(writer: Writer) -> None:
        if writer.form != "bare":
            folder = cwd or writer.folder
            writer.record(
                "turn_context",
                {"turn_id": writer.task, "cwd": folder, "approval_policy": "never"}
                | {"sandbox_policy": {"type": "read-only"}, "model": model, "summary": "auto"},
            )

    return write


def rollback(turns: int) -> Step:
    """Take back the newest turns."""
    return event("thread_rolled_back", num_turns=turns)


def compacted(message: str = "", replacement: Sequence[Json] | None = None) -> Step:
    """Replace the model's history."""
    history = {} if replacement is None else {"replacement_history": replacement}
    return record("compacted", {"message": message, **history})


# --- what is asked otherwise ---------------------------------------------------------------------


def goal(objective: str, status: str = "active", thread: str | None = None) -> Step:
    """Report the goal of the thread as it is now."""

    def write(writer: Writer) -> None:
        owner = thread or writer.thread
        told = {"threadId": owner, "objective": objective, "status": status, "tokensUsed": 0}
        writer.event("thread_goal_updated", threadId=owner, goal=told)

    return write


def for_goal() -> Step:
    """Give the model what Codex gives it in a task that goes on with the goal."""
    text = "Continue working toward the active thread goal."
    return injected(f'<codex_internal_context source="goal">\n{text}\n</codex_internal_context>')


def approved_plan(text: str) -> Step:
    """Hand a plan over that a person approved elsewhere."""
    handed = {"name": "proposed_plan", "namespace": "agent", "output": text}
    return response("function_call_output", **handed)


def proposed_plan(text: str) -> Step:
    """Let the agent propose a plan."""
    return lambda writer: writer.event(
        "item_completed", turn_id=writer.task, item={"type": "Plan", "id": "p", "text": text}
    )


def letter(
    form: str, text: str, *, author: str = "/lead", recipient: str = "/lead/x", sealed: bool = False
) -> Step:
    """Let an agent write to another one; a `sealed` text is encrypted."""
    head = f"Message Type: {form}\nTask name: {recipient}\nSender: {author}\nPayload:\n"
    body = {"type": "encrypted_content", "encrypted_content": text}
    parts = [{"type": "input_text", "text": head if sealed else head + text}]
    content = [*parts, body] if sealed else parts
    return response("agent_message", author=author, recipient=recipient, content=content)


def review(what: str, findings: Sequence[Json] = (), *, turn: str | None = None) -> Step:
    """Enter and leave a review."""

    def write(writer: Writer) -> None:
        target = {"type": "uncommittedChanges"}
        output = {"findings": findings, "overall_explanation": ""}
        if writer.form == "legacy":
            writer.event("entered_review_mode", target=target, user_facing_hint=what)
            writer.event("exited_review_mode", review_output=output)
        writer.item("EnteredReviewMode", turn, id="e", target=target, user_facing_hint=what)
        writer.item("ExitedReviewMode", turn, id="f", review_output=output)

    return write


# --- what is said --------------------------------------------------------------------------------


def user(*texts: str, ref: str | None = None, turn: str | None = None, images: int = 0) -> Step:
    """Let a person write a message."""

    def write(writer: Writer) -> None:
        writer.message("user", texts)
        content = [{"type": "text", "text": text} for text in texts]
        content += [{"type": "image", "image_url": "data:image/png;base64,AAAA"}] * images
        writer.item("UserMessage", turn, id=writer.name("u", ref), content=content)
        if writer.form == "legacy":
            pictures = ["data:image/png;base64,AAAA"] * images
            writer.event("user_message", message="\n".join(texts), images=pictures, local_images=[])

    return write


def injected(*texts: str, role: str = "user") -> Step:
    """Put a message into the model's history that nobody typed."""
    return lambda writer: writer.message(role, texts)


def environment(cwd: str = FOLDER) -> Step:
    """Inject the folder as Codex does at the beginning."""
    return injected(f"<environment_context>\n  <cwd>{cwd}</cwd>\n</environment_context>")


def assistant(text: str) -> Step:
    """Let the model say something."""

    def write(writer: Writer) -> None:
        writer.message("assistant", [text])
        writer.item("AgentMessage", None, id="a", content=[{"type": "Text", "text": text}])
        if writer.form == "legacy":
            writer.event("agent_message", message=text)

    return write


def reasoning(text: str = "Looking around") -> Step:
    """Let the model think."""
    summary = [{"type": "summary_text", "text": text}]
    return lambda writer: writer.response("reasoning", summary=summary, encrypted_content="gAAA")


def tokens(total: int, *, read: int | None = None, window: int = WINDOW) -> Step:
    """State what the last call of the model used."""
    used = {"input_tokens": total - 11 if read is None else read, "total_tokens": total}
    info = {"total_token_usage": used, "last_token_usage": used, "model_context_window": window}
    return event("token_count", info=info, rate_limits=None)


# --- what is done --------------------------------------------------------------------------------


def call(name: str, arguments: object, call_id: str, **more: object) -> Step:
    """Let the model call a function, and nothing else."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return lambda writer: writer.response(
        "function_call", name=name, **more, arguments=text, call_id=call_id
    )


def custom_call(name: str, text: str, call_id: str) -> Step:
    """Let the model call a tool that takes a text, and nothing else."""
    return lambda writer: writer.response(
        "custom_tool_call", status="completed", call_id=call_id, name=name, input=text
    )


def output(call_id: str, text: object, *, custom: bool = False) -> Step:
    """Answer a call, and nothing else."""
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return lambda writer: writer.response(kind, call_id=call_id, output=text)


def shell(
    script: str,
    output: str = "",
    *,
    reads: Sequence[str] = (),
    workdir: str | None = None,
    status: str = "completed",
    exit_code: int = 0,
    call: str | None = None,
    turn: str | None = None,
) -> Step:
    """Run a command; `reads` are the files that Codex itself saw it read."""

    def write(writer: Writer) -> None:
        name = writer.name("c", call)
        inside = {} if workdir is None else {"workdir": workdir}
        arguments: dict[str, object] = {"command": ["bash", "-lc", script]}
        if writer.form != "bare":
            arguments = {"cmd": script}
        _called(
            writer, "exec_command" if writer.form != "bare" else "shell", arguments | inside, name
        )
        parsed = [{"type": "read", "cmd": script, "name": path, "path": path} for path in reads]
        writer.item(
            "CommandExecution",
            turn,
            id=name,
            command=["/bin/bash", "-lc", script],
            cwd=f"file://{workdir or writer.folder}",
            parsed_cmd=parsed or [{"type": "unknown", "cmd": script}],
            status=status,
            aggregated_output=output,
            exit_code=exit_code,
        )
        _answered(writer, name, f"Process exited with code {exit_code}\nOutput:\n{output}")

    return write


def patch(
    *,
    add: str | None = None,
    update: str | None = None,
    delete: str | None = None,
    move: tuple[str, str] | None = None,
    content: str = "x\n",
    done: bool = True,
    call: str | None = None,
    turn: str | None = None,
) -> Step:
    """Change files; paths in the patch are relative, in Codex's own report absolute.

    `content` is that of an added file.
    """

    def write(writer: Writer) -> None:
        name = writer.name("c", call)
        text = patch_text(add=add, update=update, delete=delete, move=move, content=content)
        custom_call("apply_patch", text, name)(writer)
        reported: dict[str, object] = {}
        for path, change in (
            (add, {"type": "add", "content": content}),
            (update, {"type": "update", "unified_diff": "@@\n-x\n+y\n", "move_path": None}),
            (delete, {"type": "delete", "content": "x\n"}),
        ):
            if path is not None:
                reported[_absolute(writer, path)] = change
        if move is not None:
            goal = {"move_path": _absolute(writer, move[1])}
            reported[_absolute(writer, move[0])] = {"type": "update", "unified_diff": ""} | goal
        status = "completed" if done else "failed"
        writer.item("FileChange", turn, id=name, changes=reported, status=status)
        if writer.form == "legacy":
            writer.event(
                "patch_apply_end", call_id=name, success=done, changes=reported, status=status
            )
        answer = "Success. Updated the following files:\n" if done else "Failed to find context\n"
        _answered(writer, name, answer, custom=True)

    return write


def patch_text(
    *,
    add: str | None = None,
    update: str | None = None,
    delete: str | None = None,
    move: tuple[str, str] | None = None,
    content: str = "x\n",
) -> str:
    """Write a patch in the model's grammar."""
    parts = ["*** Begin Patch\n"]
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    parts += [] if add is None else [f"*** Add File: {add}\n{lines}"]
    parts += [] if update is None else [f"*** Update File: {update}\n@@\n-x\n+y\n"]
    parts += [] if delete is None else [f"*** Delete File: {delete}\n"]
    if move is not None:
        parts.append(f"*** Update File: {move[0]}\n*** Move to: {move[1]}\n@@\n-x\n+y\n")
    return "".join(parts) + "*** End Patch"


def plan(*steps: tuple[str, bool], call: str | None = None) -> Step:
    """Let the model set its plan, each step a text and whether it is done."""

    def write(writer: Writer) -> None:
        name = writer.name("c", call)
        told = [
            {"step": text, "status": "completed" if done else "pending"} for text, done in steps
        ]
        _called(writer, "update_plan", {"plan": told}, name)
        _answered(writer, name, "Plan updated")

    return write


def mcp(
    server: str,
    tool: str,
    text: str,
    arguments: Json | None = None,
    *,
    status: str = "completed",
    call: str | None = None,
) -> Step:
    """Call a tool of an MCP server, which answers with a text."""
    asked = {"q": 1} if arguments is None else dict(arguments)

    def write(writer: Writer) -> None:
        name = writer.name("c", call)
        _called(writer, tool.replace(".", "_"), asked, name, namespace=f"mcp__{server}")
        content = [{"type": "text", "text": text}]
        told = {"server": server, "tool": tool, "arguments": asked}
        writer.item(
            "McpToolCall", None, id=name, **told, status=status, result={"content": content}
        )
        if writer.form == "legacy":
            result = {"Ok": {"content": content}}
            writer.event("mcp_tool_call_end", call_id=name, invocation=told, result=result)
        _answered(writer, name, f"Wall time: 0.1 seconds\nOutput:\n{text}")

    return write


def image(path: str, *, call: str | None = None) -> Step:
    """Show the model an image from the disk."""

    def write(writer: Writer) -> None:
        name = writer.name("c", call)
        _called(writer, "view_image", {"path": path}, name)
        writer.item("ImageView", None, id=name, path=_absolute(writer, path))
        _answered(writer, name, [{"type": "input_image", "image_url": "data:image/png;base64,AA"}])

    return write


def _called(writer: Writer, name: str, arguments: Json, call_id: str, **more: object) -> None:
    call(name, arguments, call_id, **more)(writer)


def _answered(writer: Writer, call_id: str, text: object, *, custom: bool = False) -> None:
    output(call_id, text, custom=custom)(writer)


def _absolute(writer: Writer, path: str) -> str:
    return path if path.startswith("/") or writer.folder is None else f"{writer.folder}/{path}"


# --- single lines, and damage --------------------------------------------------------------------


def record(kind: str, payload: object) -> Step:
    """Write one line of any kind."""
    return lambda writer: writer.record(kind, payload)


def event(kind: str, /, **fields: object) -> Step:
    """Write one event of any kind."""
    return lambda writer: writer.event(kind, **fields)


def response(kind: str, /, **fields: object) -> Step:
    """Write one item of the model's history of any kind."""
    return lambda writer: writer.response(kind, **fields)


def item(kind: str, /, *, turn: str | None = None, **fields: object) -> Step:
    """Write one item of any kind that tells what happened."""
    return lambda writer: writer.item(kind, turn, **fields)


def raw(data: bytes) -> Step:
    """Write bytes as they are."""
    return lambda writer: writer.write(data)


def blank(text: bytes = b"") -> Step:
    """Write a line without anything in it, or with white space alone."""
    return raw(text + b"\n")


def torn(step: Step, lose: int = 20) -> Step:
    """Lose the last bytes of a step's last line, and its line end: the process was killed.

    Codex takes the ordinal of such a line for the next one.
    """

    def write(writer: Writer) -> None:
        step(writer)
        writer.data = writer.data[: -1 - lose]
        writer.next_ordinal -= 1

    return write


def crlf(data: bytes) -> bytes:
    """End every line as Windows does."""
    return data.replace(b"\n", b"\r\n")
