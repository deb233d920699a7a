from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.ticket_out import TicketOut


def make_ticket() -> Call[TicketOut]:
    """Create a ticket with which a browser can open one WebSocket as the caller.

    The ticket is valid for 30 seconds.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "make_ticket",
        "POST",
        "/v1/tickets",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TicketOut:
    from ...models.ticket_out import TicketOut

    if response.status_code == 201:
        response_201 = TicketOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
