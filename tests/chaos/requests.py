"""Requests of the fault injection, which are repeated until they succeed."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import httpx

RETRY_S = 0.1
GIVES_UP_S = 120.0


async def send_until_done(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    body: Any,
    expected: Collection[int],
    within_s: float = GIVES_UP_S,
) -> httpx.Response:
    """Repeat a request until it is answered with an expected status; return the response.

    Raises TimeoutError when the service does not recover.
    """
    async with asyncio.timeout(within_s):
        while True:
            with suppress(httpx.HTTPError):
                answer = await http.request(method, f"/v1{path}", json=body)
                if answer.status_code in expected:
                    return answer
            await asyncio.sleep(RETRY_S)
