from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.key_created import KeyCreated
    from ...models.key_rotation import KeyRotation


def rotate_key(
    key: str,
    *,
    body: KeyRotation | Unset = UNSET,
) -> Call[KeyCreated]:
    """Create a new credential with the same name and permissions.

    The previous one stays valid for the overlap period. At most two credentials of a family are active: revoke one before
    you create a third.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "rotate_key",
        "POST",
        "/v1/keys/{key}/rotations".format(
            key=quote(str(key), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> KeyCreated:
    from ...models.key_created import KeyCreated

    if response.status_code == 201:
        response_201 = KeyCreated.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
