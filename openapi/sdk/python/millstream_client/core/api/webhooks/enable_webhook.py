from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.webhook_changed import WebhookChanged


def enable_webhook(
    webhook: str,
) -> Call[WebhookChanged]:
    """Enable a webhook that the service has disabled, or resume a paused one.

    Shards waiting for a retry are retried immediately.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "enable_webhook",
        "POST",
        "/v1/webhooks/{webhook}/enable".format(
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
