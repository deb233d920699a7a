"""Pauses of a chaos run: noticed, recorded, and ended."""

import asyncio

import httpx
import pytest

from tests.chaos import pauses
from tests.chaos.callers import Caller
from tests.chaos.history import History, Kind
from tests.chaos.requests import send_until_done


async def test_pause_is_recorded_between_its_two_requests(monkeypatch):
    requests: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append((request.method, request.url.path))
        return httpx.Response(200, json={})

    async def sleep(seconds: float) -> None:
        requests.append(("sleep", f"{seconds:.1f}"))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://api")
    caller = Caller("operator", History(), http)

    await pauses.pause_group(caller, "readers", 2.0)

    path = "/v1/groups/readers/pause"
    waits_s = pauses.HEARTBEAT_S + 2.0
    [pause] = caller.history.operations
    assert requests == [("PUT", path), ("sleep", f"{waits_s:.1f}"), ("DELETE", path)]
    assert (pause.kind, pause.log, pause.group) == (Kind.PAUSED, "", "readers")
    assert pause.promised_s == 0


@pytest.mark.parametrize("failure", [httpx.Response(503), httpx.ConnectError("refused")])
async def test_request_is_repeated_until_it_succeeds(failure):
    outcomes: list[httpx.Response | httpx.HTTPError] = [failure, httpx.Response(204)]

    def answer(_: httpx.Request) -> httpx.Response:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as http:
        response = await send_until_done(http, "DELETE", "/streams/s", None, {204, 404})

    assert response.status_code == 204
