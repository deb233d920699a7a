from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.rotate_token_in import RotateTokenIn
    from ...models.source_url import SourceUrl


def rotate_source_url(
    source: str,
    *,
    body: RotateTokenIn | Unset = UNSET,
) -> Call[SourceUrl]:
    """Replace the path of a source, for example after it leaked.

    The previous path is valid for the overlap period, so that no event is refused meanwhile.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "rotate_source_url",
        "POST",
        "/v1/sources/{source}/rotate-url".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceUrl:
    from ...models.source_url import SourceUrl

    if response.status_code == 200:
        response_200 = SourceUrl.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
