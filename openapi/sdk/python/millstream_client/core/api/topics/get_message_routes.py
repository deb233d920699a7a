from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.message_routes import MessageRoutes


def get_message_routes(
    topic: str,
    message: str,
) -> Call[MessageRoutes]:
    """Show the routes that take a published message, and whether its targets have it.

    Which routes take a message is decided when it is accepted, and does not change.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_message_routes",
        "GET",
        "/v1/topics/{topic}/messages/{message}/routes".format(
            topic=quote(str(topic), safe=""),
            message=quote(str(message), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MessageRoutes:
    from ...models.message_routes import MessageRoutes

    if response.status_code == 200:
        response_200 = MessageRoutes.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
