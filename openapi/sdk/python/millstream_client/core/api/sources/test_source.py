from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.received_event import ReceivedEvent


def test_source(
    source: str,
) -> Call[ReceivedEvent]:
    """Send a test event, signed as the provider does, through the source to its target."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "test_source",
        "POST",
        "/v1/sources/{source}/test".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ReceivedEvent:
    from ...models.received_event import ReceivedEvent

    if response.status_code == 200:
        response_200 = ReceivedEvent.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
