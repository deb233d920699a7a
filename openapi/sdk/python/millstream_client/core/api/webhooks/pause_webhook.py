from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.webhook_changed import WebhookChanged


def pause_webhook(
    webhook: str,
) -> Call[WebhookChanged]:
    """Pause deliveries. Messages and records wait in their queue or stream.

    The response waits until the requests in progress have ended (`in_force`).
    """

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


def _read(response: httpx.Response) -> WebhookChanged:
    from ...models.webhook_changed import WebhookChanged

    if response.status_code == 200:
        response_200 = WebhookChanged.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
