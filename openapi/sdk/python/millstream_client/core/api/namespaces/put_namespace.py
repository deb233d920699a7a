from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.namespace_config import NamespaceConfig
from ...models.namespace_out import NamespaceOut
from ...types import UNSET, Unset


def put_namespace(
    namespace: str,
    *,
    body: NamespaceConfig | Unset = UNSET,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[NamespaceOut]:
    """Create a namespace, or replace its quotas. They apply in all processes within a second."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

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
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> NamespaceOut:
    if response.status_code == 200:
        response_200 = NamespaceOut.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = NamespaceOut.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
