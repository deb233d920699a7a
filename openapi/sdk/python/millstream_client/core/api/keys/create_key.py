from typing import Any

import httpx

from ....calls import Call
from ...models.key_config import KeyConfig
from ...models.key_created import KeyCreated


def create_key(
    *,
    body: KeyConfig,
) -> Call[KeyCreated]:
    """Make a credential. Its secret is in the answer, and nowhere else.

    Nobody gives rights, or rates, that they do not have. A pair's secret is kept encrypted; an API key's is not kept.
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
    if response.status_code == 201:
        response_201 = KeyCreated.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
