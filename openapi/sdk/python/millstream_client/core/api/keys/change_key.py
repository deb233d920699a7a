from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.key_out import KeyOut
    from ...models.key_patch import KeyPatch


def change_key(
    key: str,
    *,
    body: KeyPatch,
    if_match: str | Unset = UNSET,
) -> Call[KeyOut]:
    """Change permissions of a credential. They apply from its next call."""
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "change_key",
        "PATCH",
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
