from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.namespace_config import NamespaceConfig
    from ...models.namespace_stored import NamespaceStored


def put_namespace(
    namespace: str,
    *,
    body: NamespaceConfig | Unset = UNSET,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[NamespaceStored]:
    """Create a namespace, or replace its quotas. They apply in all processes within a second."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_namespace",
        "PUT",
        "/v1/namespaces/{namespace}".format(
            namespace=quote(str(namespace), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> NamespaceStored:
    from ...models.namespace_stored import NamespaceStored

    if response.status_code == 200:
        response_200 = NamespaceStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = NamespaceStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
