from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.job_kind import JobKind
    from ...models.job_page import JobPage
    from ...models.job_state import JobState


def list_jobs(
    *,
    kind: JobKind | Unset = UNSET,
    state: JobState | Unset = UNSET,
    limit: int | Unset = 100,
    cursor: str | Unset = "",
) -> Call[JobPage]:
    """List jobs, newest first. Finished jobs are listed for 30 days."""

    params: dict[str, Any] = {}

    json_kind: str | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = kind.value

    params["kind"] = json_kind

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state.value

    params["state"] = json_state

    params["limit"] = limit

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_jobs",
        "GET",
        "/v1/jobs",
        _read,
        params=params,
        **_kwargs,
    )


def _read(response: httpx.Response) -> JobPage:
    from ...models.job_page import JobPage

    if response.status_code == 200:
        response_200 = JobPage.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
