from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, File, Unset

if TYPE_CHECKING:
    from ...models.published_message_out import PublishedMessageOut


def publish_raw_message(
    topic: str,
    *,
    body: File,
    subject: str | Unset = UNSET,
    key: str | Unset = UNSET,
    keep_headers: str | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
    millstream_acknowledge: str | Unset = UNSET,
) -> Call[PublishedMessageOut]:
    """Publish the request's body as a message, whatever its content type.

    For programs whose requests you cannot shape, such as webhooks of other services. The message has the request's content
    type; its other fields are in headers (`Millstream-Subject`, `Millstream-Key`, `Millstream-Dedup-Id`, `Millstream-Header-Name`, …) or in the query.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(millstream_acknowledge, Unset):
        headers["Millstream-Acknowledge"] = millstream_acknowledge

    params: dict[str, Any] = {}

    params["subject"] = subject

    params["key"] = key

    params["keep_headers"] = keep_headers

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["content"] = body.payload

    headers["Content-Type"] = "application/octet-stream"
    return Call(
        "publish_raw_message",
        "POST",
        "/v1/topics/{topic}/messages/raw".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> PublishedMessageOut:
    from ...models.published_message_out import PublishedMessageOut

    if response.status_code == 201:
        response_201 = PublishedMessageOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
