from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.mirror_out import MirrorOut


def get_mirror(
    mirror: str,
    *,
    if_none_match: str | Unset = UNSET,
) -> Call[MirrorOut]:
    """Show the configuration of a mirror, without its key."""
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_mirror",
        "GET",
        "/v1/mirrors/{mirror}".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MirrorOut:
    from ...models.mirror_out import MirrorOut

    if response.status_code == 200:
        response_200 = MirrorOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
