from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.back_test_config import BackTestConfig
    from ...models.back_test_out import BackTestOut


def backtest_match(
    topic: str,
    *,
    body: BackTestConfig,
) -> Call[BackTestOut]:
    """Evaluate a match on the messages that a topic has, beside that of a route.

    Nothing is delivered. The answer is sent when all messages are evaluated, up to 200,000; a job evaluates any number
    (`start_backtest_job`).
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "backtest_match",
        "POST",
        "/v1/topics/{topic}/backtests".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> BackTestOut:
    from ...models.back_test_out import BackTestOut

    if response.status_code == 200:
        response_200 = BackTestOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
