from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.mirror_config import MirrorConfig
    from ...models.mirror_stored import MirrorStored


def put_mirror(
    mirror: str,
    *,
    body: MirrorConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[MirrorStored]:
    """Create a mirror that copies streams and queues of another deployment to this one, or replace its configuration.

    Each record of the other deployment is added once, and those of a key stay in order. Streams are created here with the
    settings and the number of shards that they have there, and so are the consumer groups that read them, whose committed
    offsets move with those of the other deployment, unless `groups` is false. The copy of a queue has the messages and dead
    letters that the queue has, takes no other messages, and delivers nothing until the mirror is promoted. What has been copied stays. Whether the mirror is
    paused does not change. With `If-None-Match: *`, an existing mirror is not changed: the response is 412, with the mirror
    (`current`) and the requested fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_mirror",
        "PUT",
        "/v1/mirrors/{mirror}".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MirrorStored:
    from ...models.mirror_stored import MirrorStored

    if response.status_code == 200:
        response_200 = MirrorStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = MirrorStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
