from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.job_detail import JobDetail


def get_job(
    job: str,
) -> Call[JobDetail]:
    """Show the progress of a job."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_job",
        "GET",
        "/v1/jobs/{job}".format(
            job=quote(str(job), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> JobDetail:
    from ...models.job_detail import JobDetail

    if response.status_code == 200:
        response_200 = JobDetail.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
