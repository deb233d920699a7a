from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.mirror_out import MirrorOut


def resume_mirror(
    mirror: str,
) -> Call[MirrorOut]:
    """Resume a paused mirror."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "resume_mirror",
        "DELETE",
        "/v1/mirrors/{mirror}/pause".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MirrorOut:
    from ...models.mirror_out import MirrorOut

    if response.status_code == 200:
        response_200 = MirrorOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
