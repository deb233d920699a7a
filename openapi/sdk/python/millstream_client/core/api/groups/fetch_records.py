from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.group_records import GroupRecords


def fetch_records(
    group: str,
    *,
    key: list[str] | Unset = UNSET,
    header: list[str] | Unset = UNSET,
    body: list[str] | Unset = UNSET,
    subject: list[str] | Unset = UNSET,
    match: str | Unset = UNSET,
    member: str | Unset = UNSET,
    token: str | Unset = UNSET,
    after: str | Unset = UNSET,
    limit: int | Unset = 1000,
    bytes_max: int | Unset = 10485760,
    wait_seconds: float | Unset = 0.0,
) -> Call[GroupRecords]:
    """Read records as a member of a group.

    Joins if necessary, sends a heartbeat, and reads the member's shards. Repeating the call with the same `token` and without
    a commit returns the same records. With `wait_seconds`, the call waits for the next record. Revoked shards are released
    by the next call. With a filter, records that do not match are passed over: where none matches, the call commits what it has
    passed, and reads on while it waits. A call without a token fences any other process with this member name.
    """

    params: dict[str, Any] = {}

    json_key: list[str] | Unset = UNSET
    if not isinstance(key, Unset):
        json_key = key

    params["key"] = json_key

    json_header: list[str] | Unset = UNSET
    if not isinstance(header, Unset):
        json_header = header

    params["header"] = json_header

    json_body: list[str] | Unset = UNSET
    if not isinstance(body, Unset):
        json_body = body

    params["body"] = json_body

    json_subject: list[str] | Unset = UNSET
    if not isinstance(subject, Unset):
        json_subject = subject

    params["subject"] = json_subject

    params["match"] = match

    params["member"] = member

    params["token"] = token

    params["after"] = after

    params["limit"] = limit

    params["bytes_max"] = bytes_max

    params["wait_seconds"] = wait_seconds

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "fetch_records",
        "GET",
        "/v1/groups/{group}/records".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> GroupRecords:
    from ...models.group_records import GroupRecords

    if response.status_code == 200:
        response_200 = GroupRecords.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
