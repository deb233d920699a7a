from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.webhook_out import WebhookOut


def get_webhook(
    webhook: str,
) -> Call[WebhookOut]:
    """Show the configuration and health of a webhook. The ETag covers the configuration only."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_webhook",
        "GET",
        "/v1/webhooks/{webhook}".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> WebhookOut:
    from ...models.webhook_out import WebhookOut

    if response.status_code == 200:
        response_200 = WebhookOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
