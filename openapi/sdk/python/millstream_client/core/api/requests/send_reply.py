from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.accepted_reply import AcceptedReply
    from ...models.send_reply import SendReply


def send_reply(
    request: str,
    *,
    body: SendReply | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[AcceptedReply]:
    """Reply to a request: the `reply_to` of a received message.

    Reply first, then acknowledge: if you fail in between, the message is received again, and a second reply is refused with
    `reply_taken`.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "send_reply",
        "POST",
        "/v1/requests/{request}/replies".format(
            request=quote(str(request), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> AcceptedReply:
    from ...models.accepted_reply import AcceptedReply

    if response.status_code == 201:
        response_201 = AcceptedReply.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
