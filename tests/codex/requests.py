"""Read a request of Codex without the parts that every request has."""

from typing import Any

from codex.scripted_model import Request, text_of

NOT_COMPARED = ("id", "metadata", "internal_chat_message_metadata_passthrough")


def sent(request: Request) -> list[Any]:
    """Return the items without ids and without the base instructions, the first message."""
    items = [
        {key: value for key, value in item.items() if key not in NOT_COMPARED}
        for item in request.input
    ]
    first = next(place for place, item in enumerate(items) if item["type"] == "message")
    assert items[first]["role"] == "developer"
    return items[:first] + items[first + 1 :]


def is_context(item: Any) -> bool:  # noqa: ANN401 - an item as it stands
    """Return whether an item is what Codex adds before a prompt: something in tags."""
    return text_of(item).startswith("<")
