from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.key_out import KeyOut


def get_key(
    key: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[KeyOut]:
    """Show a credential without its secret, which cannot be retrieved."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_key",
        "GET",
        "/v1/keys/{key}".format(
            key=quote(str(key), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> KeyOut:
    from ...models.key_out import KeyOut

    if response.status_code == 200:
        response_200 = KeyOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
