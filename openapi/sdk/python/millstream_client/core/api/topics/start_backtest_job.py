from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.back_test_job_config import BackTestJobConfig
    from ...models.back_test_job_out import BackTestJobOut


def start_backtest_job(
    topic: str,
    *,
    body: BackTestJobConfig,
) -> Call[BackTestJobOut]:
    """Start a job that evaluates a match on all messages that a topic has, also archived ones.

    They are those that were accepted before the call. A topic has one such job at a time: the same back-test again returns the open
    job, another one is refused. It also needs the permission `topic:read`. Jobs are cancelled and retried with `/v1/jobs`.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "start_backtest_job",
        "POST",
        "/v1/topics/{topic}/backtests/jobs".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BackTestJobOut:
    from ...models.back_test_job_out import BackTestJobOut

    if response.status_code == 202:
        response_202 = BackTestJobOut.from_dict(response.json())

        return response_202

    raise AssertionError(f"{response.status_code} was not read")
