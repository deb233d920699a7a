from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.webhook_config import WebhookConfig
    from ...models.webhook_stored import WebhookStored


def put_webhook(
    webhook: str,
    *,
    body: WebhookConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[WebhookStored]:
    """Create a webhook for a queue or a consumer group, or replace its configuration.

    When the webhook is created, the response contains the signing secret, in the format of Standard Webhooks. Whether it is
    paused or disabled does not change. With `If-None-Match: *`, an existing webhook is not changed: the response is 412,
    with the webhook (`current`) and the requested fields that differ from it (`changes`). The response waits until no deliverer sends by the
    former configuration (`in_force`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_webhook",
        "PUT",
        "/v1/webhooks/{webhook}".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> WebhookStored:
    from ...models.webhook_stored import WebhookStored

    if response.status_code == 200:
        response_200 = WebhookStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = WebhookStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
