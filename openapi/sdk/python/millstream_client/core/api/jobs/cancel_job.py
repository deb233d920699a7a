from typing import Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...models.job_out import JobOut


def cancel_job(
    job: str,
) -> Call[JobOut]:
    """End a job; what it has done stays. A running one ends within seconds: its `wish` is 'cancel' until then."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "cancel_job",
        "POST",
        "/v1/jobs/{job}/cancel".format(
            job=quote(str(job), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> JobOut:
    if response.status_code == 200:
        response_200 = JobOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
