"""Filters of messages that are browsed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class MessageFilter(TypedDict, total=False):
    """Conditions on messages, which must all hold.

    `body` has the required values by JSON Pointer, such as `{"/customer/id": 7}`; `...` is any value. `sent_from` and
    `sent_before` are times with a zone.
    """

    groups: list[str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    text: str
    sent_from: datetime
    sent_before: datetime


def query_of(conditions: MessageFilter) -> dict[str, Any]:
    """Return the parameters of the conditions."""
    query = {
        "group": list(conditions.get("groups", ())),
        "header": [f"{name}:{value}" for name, value in conditions.get("headers", {}).items()],
        "body": [_term(path, value) for path, value in conditions.get("body", {}).items()],
        "text": conditions.get("text"),
        "from_": conditions.get("sent_from"),
        "to": conditions.get("sent_before"),
    }
    return {name: value for name, value in query.items() if value}


def _term(path: str, value: Any) -> str:
    return path if value is ... else f"{path}={json.dumps(value)}"
