from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.rotate_in import RotateIn
    from ...models.secret_out import SecretOut


def rotate_webhook_secret(
    webhook: str,
    *,
    body: RotateIn | Unset = UNSET,
) -> Call[SecretOut]:
    """Create a new signing secret.

    The previous secret also signs deliveries for the overlap period, so that no delivery is rejected. The response waits
    until no deliverer sends without the new secret (`in_force`).
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "rotate_webhook_secret",
        "POST",
        "/v1/webhooks/{webhook}/secret".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SecretOut:
    from ...models.secret_out import SecretOut

    if response.status_code == 200:
        response_200 = SecretOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
