from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.attempt_outcome import AttemptOutcome
    from ...models.delivery_page import DeliveryPage
    from ...models.delivery_status import DeliveryStatus


def list_deliveries(
    webhook: str,
    *,
    status: DeliveryStatus | Unset = UNSET,
    message: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    response_status: int | Unset = UNSET,
    outcome: AttemptOutcome | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[DeliveryPage]:
    """List deliveries and their attempts, newest first, including pending ones."""

    params: dict[str, Any] = {}

    json_status: str | Unset = UNSET
    if not isinstance(status, Unset):
        json_status = status.value

    params["status"] = json_status

    params["message"] = message

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    params["response_status"] = response_status

    json_outcome: str | Unset = UNSET
    if not isinstance(outcome, Unset):
        json_outcome = outcome.value

    params["outcome"] = json_outcome

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_deliveries",
        "GET",
        "/v1/webhooks/{webhook}/deliveries".format(
            webhook=quote(str(webhook), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> DeliveryPage:
    from ...models.delivery_page import DeliveryPage

    if response.status_code == 200:
        response_200 = DeliveryPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
