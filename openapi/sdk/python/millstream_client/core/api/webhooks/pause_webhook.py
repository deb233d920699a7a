from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.webhook_out import WebhookOut


def pause_webhook(
    webhook: str,
) -> Call[WebhookOut]:
    """Pause deliveries. Messages and records wait in their queue or stream."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "pause_webhook",
        "PUT",
        "/v1/webhooks/{webhook}/pause".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> WebhookOut:
    if response.status_code == 200:
        response_200 = WebhookOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
