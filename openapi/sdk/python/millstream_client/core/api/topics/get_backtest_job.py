from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.back_test_job_out import BackTestJobOut


def get_backtest_job(
    topic: str,
    job: str,
) -> Call[BackTestJobOut]:
    """Show a back-test that runs as a job, and its result so far."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "get_backtest_job",
        "GET",
        "/v1/topics/{topic}/backtests/jobs/{job}".format(
            topic=quote(str(topic), safe=""),
            job=quote(str(job), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BackTestJobOut:
    from ...models.back_test_job_out import BackTestJobOut

    if response.status_code == 200:
        response_200 = BackTestJobOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
