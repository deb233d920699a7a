"""The webhook receiver and the event follower of the chaos runs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random

import httpx
import pytest
import standardwebhooks

from tests.chaos.callers import Caller
from tests.chaos.checking.webhooks import UNSIGNED, every_post_is_signed
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.chaos.webhook_receiver import Hooks, receiving_hooks
from tests.chaos.workload import is_well
from tests.server_sent_events import Event, events_as_they_come

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Lucky(Random):
    """Always succeeds."""

    def random(self) -> float:
        return 0.999


class Unlucky(Random):
    """Always fails."""

    def random(self) -> float:
        return 0.0


def _created(request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"secret": SECRET})


async def _post(hooks: Hooks, body: bytes, secret: str = SECRET) -> int:
    moment = datetime.now(UTC)
    headers = {
        "webhook-id": "s-1-7",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": standardwebhooks.Webhook(secret).sign("s-1-7", moment, "a:1"),
        "millstream-event": "stream.record",
        "millstream-shard": "1",
        "millstream-offset": "7",
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{hooks.port}/hook"
        return (await http.post(url, content=body, headers=headers)).status_code


async def _received(chance: Random, body: bytes, secret: str = SECRET) -> tuple[int, History]:
    history = History()
    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(_created), base_url="http://api") as http,
        receiving_hooks(Caller("hooks", history, http), chance) as hooks,
    ):
        await hooks.put("hook", "group:posting", "events")
        return await _post(hooks, body, secret), history


async def test_accepted_webhook_is_recorded():
    status, history = await _received(Lucky(), b"a:1")

    [posted] = [operation for operation in history.operations if operation.kind is Kind.POSTED]
    [seen] = posted.seen
    assert (status, posted.outcome, posted.log) == (204, Outcome.OK, "events")
    assert (seen.value, seen.id, seen.shard, seen.offset) == ("a:1", "s-1-7", 1, 7)


async def test_rejected_webhook_is_recorded_as_failure():
    status, history = await _received(Unlucky(), b"a:1")

    assert (status, history.operations[-1].outcome) == (500, Outcome.FAIL)


@pytest.mark.parametrize(
    ("body", "secret"), [(b"a:2", SECRET), (b"a:1", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
)
async def test_invalid_signature_is_recorded(body, secret):
    status, history = await _received(Lucky(), body, secret)

    assert (status, history.operations[-1].code) == (401, UNSIGNED)
    assert not every_post_is_signed(history.operations).holds


async def _lines(*lines: str) -> AsyncIterator[str]:
    for line in lines:
        await asyncio.sleep(0)
        yield line


async def test_truncated_event_is_discarded():
    cut = _lines("retry: 2000", "", "id: 1", 'data: {"a":1}', "", ": still here", "", "id: 2", "")

    assert [event async for event in events_as_they_come(cut)] == [Event("message", "1", {"a": 1})]


async def test_gap_event_has_its_own_type():
    gap = _lines("event: gap", "id: 7", 'data: {"shard":0}', "", "id: 8", 'data: {"b":2}', "")

    assert [event async for event in events_as_they_come(gap)] == [
        Event("gap", "7", {"shard": 0}),
        Event("message", "8", {"b": 2}),
    ]


@pytest.mark.parametrize(
    ("outcome", "code", "well"),
    [
        (Outcome.OK, "", True),
        (Outcome.FAIL, "offset_expired", True),
        (Outcome.FAIL, "storage_unavailable", False),
        (Outcome.UNKNOWN, "", False),
    ],
)
def test_expired_offset_counts_as_healthy_answer(outcome, code, well):
    """A shard began behind its offset 0, and the run reported that recovery failed."""
    operation = Operation(
        client="probe", kind=Kind.READ, log="events", invoked=0, ended=1, outcome=outcome, code=code
    )

    assert is_well(operation) is well
