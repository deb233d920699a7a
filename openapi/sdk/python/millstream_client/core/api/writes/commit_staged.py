from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.commit_out import CommitOut
    from ...models.staged_commit import StagedCommit


def commit_staged(
    stream: str,
    *,
    body: StagedCommit,
) -> Call[CommitOut]:
    """Append staged records as one batch of a writer, each record once.

    The first commit of a batch determines its entries. A repeated commit of the batch completes it, and other entries
    that the repeated call lists are discarded.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "commit_staged",
        "POST",
        "/v1/streams/{stream}/commits".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> CommitOut:
    from ...models.commit_out import CommitOut

    if response.status_code == 200:
        response_200 = CommitOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
