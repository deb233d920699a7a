from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.browsed_message_out import BrowsedMessageOut
    from ...models.dead_letter_out import DeadLetterOut


def get_message(
    queue: str,
    message: str,
) -> Call[BrowsedMessageOut | DeadLetterOut]:
    """Show a message or dead letter by id or offset, without receiving it."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_message",
        "GET",
        "/v1/queues/{queue}/messages/{message}".format(
            queue=quote(str(queue), safe=""),
            message=quote(str(message), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BrowsedMessageOut | DeadLetterOut:
    from ...models.browsed_message_out import BrowsedMessageOut
    from ...models.dead_letter_out import DeadLetterOut

    if response.status_code == 200:

        def _parse_response_200(data: object) -> BrowsedMessageOut | DeadLetterOut:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_0 = BrowsedMessageOut.from_dict(data)

                return response_200_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_1 = DeadLetterOut.from_dict(data)

            return response_200_type_1

        response_200 = _parse_response_200(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
