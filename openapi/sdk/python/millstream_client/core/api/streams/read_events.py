from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.start import Start


def read_events(
    stream: str,
    *,
    key: list[str] | Unset = UNSET,
    header: list[str] | Unset = UNSET,
    body: list[str] | Unset = UNSET,
    subject: list[str] | Unset = UNSET,
    match: str | Unset = UNSET,
    from_: Start | Unset = UNSET,
    time: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    follow: bool | Unset = UNSET,
) -> Call[str]:
    """Stream new records from all shards (server-sent events or JSON Lines).

    The format is server-sent events, or JSON Lines if `Accept` names application/jsonl. Each shard is read in order, and
    after its parents. The header `Last-Event-ID` continues after that event. With `follow=false` the answer ends where the
    stream ends now; for JSON Lines this is the default. An answer that completed has a last event or line `end`.
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

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.value

    params["from"] = json_from_

    json_time: str | Unset = UNSET
    if not isinstance(time, Unset):
        json_time = time.isoformat()
    params["time"] = json_time

    params["cursor"] = cursor

    params["limit"] = limit

    params["follow"] = follow

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "read_events",
        "GET",
        "/v1/streams/{stream}/events".format(
            stream=quote(str(stream), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> str:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    raise AssertionError(f"{response.status_code} was not read")
