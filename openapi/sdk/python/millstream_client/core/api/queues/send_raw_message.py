from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, File, Unset

if TYPE_CHECKING:
    from ...models.sent_message_out import SentMessageOut


def send_raw_message(
    queue: str,
    *,
    body: File,
    group: str | Unset = UNSET,
    keep_headers: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[SentMessageOut]:
    """Send the request's body as a message, whatever its content type.

    For programs whose requests you cannot shape, such as webhooks of other services. The message has the request's content
    type; its other fields are in headers (`Millstream-Group`, `Millstream-Header-Name`, …) or in the query.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    params: dict[str, Any] = {}

    params["group"] = group

    params["keep_headers"] = keep_headers

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["content"] = body.payload

    headers["Content-Type"] = "application/octet-stream"
    return Call(
        "send_raw_message",
        "POST",
        "/v1/queues/{queue}/messages/raw".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SentMessageOut:
    from ...models.sent_message_out import SentMessageOut

    if response.status_code == 201:
        response_201 = SentMessageOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
