from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.commit_in import CommitIn
    from ...models.committed_offsets import CommittedOffsets


def commit_offsets(
    group: str,
    *,
    body: CommitIn | Unset = UNSET,
) -> Call[CommittedOffsets]:
    """Commit offsets, with a token or with the next offset of each shard.

    Each shard has its own result: check `failed`. If all shards fail, the response is a problem. An offset below the
    committed one changes nothing, so a commit can be repeated.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "commit_offsets",
        "POST",
        "/v1/groups/{group}/commit".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> CommittedOffsets:
    from ...models.committed_offsets import CommittedOffsets

    if response.status_code == 200:
        response_200 = CommittedOffsets.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
