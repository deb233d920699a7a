"""Reference page of the WebSocket frames, from the AsyncAPI document."""

import json
from typing import Any

from api.cli.reference.markdown import code, page, table
from api.spec.asyncapi import build_asyncapi

INTRO = (
    "All frames of `/v1/ws`, with an example each. [Push](push.md) explains their "
    "use. The AsyncAPI document (`openapi/asyncapi.json`, or `/asyncapi.json` of a "
    "running service) lists every field with its type and bounds.\n"
)
SENT, RECEIVED = "receive", "send"
HEADINGS = {SENT: "Frames that you send", RECEIVED: "Frames that you receive"}


def frames_page() -> str:
    """Return the page of every frame, by sender."""
    document = build_asyncapi()
    parts = []
    for action, heading in HEADINGS.items():
        frames = [_frame(document, name) for name in _messages_of(document, action)]
        parts.append("\n\n".join((f"## {heading}", *frames)))
    return page("WebSocket frames", INTRO, *parts)


def _messages_of(document: dict[str, Any], action: str) -> list[str]:
    """Return the names of the messages of one direction, in order.

    A reply is listed by the operation that it answers.
    """
    names = {}
    for operation in document["operations"].values():
        replies = operation.get("reply", {}).get("messages", []) if action == RECEIVED else []
        own = operation["messages"] if operation["action"] == action else []
        names.update(
            dict.fromkeys(reference["$ref"].rpartition("/")[2] for reference in (*replies, *own))
        )
    return [
        message_name for message_name in document["components"]["messages"] if message_name in names
    ]


def _frame(document: dict[str, Any], name: str) -> str:
    message = document["components"]["messages"][name]
    schema = document["components"]["schemas"][message["payload"]["$ref"].rpartition("/")[2]]
    required = set(schema.get("required", ()))
    rows = [
        (code(field), "yes" if field in required else "", shape.get("description", ""))
        for field, shape in schema["properties"].items()
        if field != "type"
    ]
    parts = [f"### {code(message['name'])}", message["summary"]]
    if message.get("description"):
        parts.append(message["description"])
    if rows:
        parts.append(table(("field", "needed", ""), rows))
    shown = [
        json.dumps(example["payload"], ensure_ascii=False) for example in message["examples"][:1]
    ]
    return "\n\n".join((*parts, *(f"```json\n{example}\n```" for example in shown)))
