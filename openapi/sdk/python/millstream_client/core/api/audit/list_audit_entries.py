from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.audit_order import AuditOrder
    from ...models.audit_page import AuditPage


def list_audit_entries(
    *,
    namespace: str | Unset = UNSET,
    principal: str | Unset = UNSET,
    action: str | Unset = UNSET,
    operation: str | Unset = UNSET,
    resource: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    order: AuditOrder | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[AuditPage]:
    """List audit entries of the caller's namespace, or of all namespaces.

    Administrators of all namespaces see all entries. With `Accept: application/x-ndjson`, the response has one line per
    entry and a last line of type `end`.
    """

    params: dict[str, Any] = {}

    params["namespace"] = namespace

    params["principal"] = principal

    params["action"] = action

    params["operation"] = operation

    params["resource"] = resource

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    json_order: str | Unset = UNSET
    if not isinstance(order, Unset):
        json_order = order.value

    params["order"] = json_order

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_audit_entries",
        "GET",
        "/v1/audit",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> AuditPage:
    from ...models.audit_page import AuditPage

    if response.status_code == 200:
        response_200 = AuditPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
