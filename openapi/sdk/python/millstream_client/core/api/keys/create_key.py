from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.key_config import KeyConfig
    from ...models.key_created import KeyCreated


def create_key(
    *,
    body: KeyConfig,
) -> Call[KeyCreated]:
    """Create a credential. The secret is returned only in this response.

    A caller cannot grant permissions or rates that it does not have. The secret of an access key pair is stored
    encrypted; the secret of an API key is not stored.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "create_key",
        "POST",
        "/v1/keys",
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
