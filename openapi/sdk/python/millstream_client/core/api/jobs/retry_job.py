from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.job_out import JobOut


def retry_job(
    job: str,
) -> Call[JobOut]:
    """Retry a failed job from where it stopped."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "retry_job",
        "POST",
        "/v1/jobs/{job}/retry".format(
            job=quote(str(job), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> JobOut:
    from ...models.job_out import JobOut

    if response.status_code == 200:
        response_200 = JobOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
