from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.resend_config import ResendConfig
    from ...models.resends_out import ResendsOut


def resend_deliveries(
    webhook: str,
    *,
    body: ResendConfig | Unset = UNSET,
) -> Call[ResendsOut]:
    """Resend deliveries that match, newest first, or count them with `dry_run`.

    A call takes 15 seconds at most, apart from its last deliveries: continue with `next_cursor` until it is null. Deliveries keep
    their `webhook-id`, by which receivers recognize what they have.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "resend_deliveries",
        "POST",
        "/v1/webhooks/{webhook}/deliveries/resends".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ResendsOut:
    from ...models.resends_out import ResendsOut

    if response.status_code == 200:
        response_200 = ResendsOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
