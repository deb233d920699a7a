from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.series_out import SeriesOut


def get_group_series(
    group: str,
    *,
    window_seconds: int | Unset = 3600,
    columns: str | Unset = "",
) -> Call[SeriesOut]:
    """Return the lag and commits of a group over time."""

    params: dict[str, Any] = {}

    params["window_seconds"] = window_seconds

    params["columns"] = columns

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_group_series",
        "GET",
        "/v1/groups/{group}/series".format(
            group=quote(str(group), safe=""),
        ),
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SeriesOut:
    from ...models.series_out import SeriesOut

    if response.status_code == 200:
        response_200 = SeriesOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
