from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.namespace_out import NamespaceOut


def get_namespace(
    namespace: str,
) -> Call[NamespaceOut]:
    """Show a namespace and its quotas. The ETag covers the quotas only."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_namespace",
        "GET",
        "/v1/namespaces/{namespace}".format(
            namespace=quote(str(namespace), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> NamespaceOut:
    from ...models.namespace_out import NamespaceOut

    if response.status_code == 200:
        response_200 = NamespaceOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
