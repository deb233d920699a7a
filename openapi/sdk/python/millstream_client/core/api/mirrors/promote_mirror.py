from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.mirror_out import MirrorOut


def promote_mirror(
    mirror: str,
) -> Call[MirrorOut]:
    """Make the streams of a mirror independent of the other deployment.

    For example after that failed. The mirror never copies again; nothing that is still on its way is added. A promotion cannot be undone: to copy again,
    in either direction, create another mirror. The other deployment is not informed: stop its writers yourself.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "promote_mirror",
        "POST",
        "/v1/mirrors/{mirror}/promotion".format(
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
