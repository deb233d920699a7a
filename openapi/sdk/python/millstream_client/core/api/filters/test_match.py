from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.match_test import MatchTest
    from ...models.match_test_result import MatchTestResult


def test_match(
    *,
    body: MatchTest,
) -> Call[MatchTestResult]:
    """Evaluate a match on a message, and explain which conditions fail. Nothing is stored."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "test_match",
        "POST",
        "/v1/filters/test",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MatchTestResult:
    from ...models.match_test_result import MatchTestResult

    if response.status_code == 200:
        response_200 = MatchTestResult.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
