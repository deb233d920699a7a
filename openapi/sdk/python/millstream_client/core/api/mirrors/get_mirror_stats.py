from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.mirror_stats import MirrorStats


def get_mirror_stats(
    mirror: str,
) -> Call[MirrorStats]:
    """Show the progress of a mirror by shard, queue and group, and why it fails, if it does."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_mirror_stats",
        "GET",
        "/v1/mirrors/{mirror}/stats".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MirrorStats:
    from ...models.mirror_stats import MirrorStats

    if response.status_code == 200:
        response_200 = MirrorStats.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
