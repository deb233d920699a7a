"""The unreliable receiver of all webhooks, which records attempts and its responses.

    took     it answers with success, sometimes slowly, and rarely after the timeout
    failed   it answers 500
    dropped  it resets or closes the connection without an answer

An attempt is recorded before its answer is sent, so that nothing can react to it earlier.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx
import standardwebhooks

from tests.chaos.callers import Caller, Told
from tests.chaos.checking.webhooks import UNSIGNED
from tests.chaos.history import Kind, Outcome, Seen
from tests.webhook_receiver import (
    Connections,
    ReceivedRequest,
    close,
    reset,
    respond_with,
    running_listener,
)

SLOWLY_S = (0.05, 0.4)
TIMEOUT_S = 2.0
TOO_LATE_S = 2.5
RETRY_S = 0.1
RETRIES = 40  # more than faults and killed deliverers can require
IN_FLIGHT = 4  # below ten consecutive failures, which would open the circuit breaker
FAILS, DROPS, SLOW, LATE = 0.02, 0.02, 0.01, 0.001
"""Probabilities; a failing record blocks its shard, so higher ones would stall the stream."""


class Hooks(Connections):
    """The receiver of all webhooks, identified by the last segment of the path."""

    def __init__(self, caller: Caller, chance: Random, host: str) -> None:
        super().__init__()
        self.host = host
        self._caller = caller
        self._chance = chance
        self._logs: dict[str, str] = {}
        self._kinds: dict[str, Kind] = {}
        self._verifiers: dict[str, standardwebhooks.Webhook] = {}
        self.reached: dict[int, int] = {}
        """Next offset by shard, after the last accepted record."""

    async def put(self, name: str, source: str, log: str, **more: Any) -> None:
        """Create a webhook of that source to this receiver; `log`: its queue or stream."""
        self._logs[name] = log
        config = {"source": source, **self._settings(name), **more}
        response = await self._caller.http.put(f"/v1/webhooks/{name}", json=config)
        secret = response.raise_for_status().json()["secret"]
        self._verifiers[name] = standardwebhooks.Webhook(secret)
        now = self._caller.history.now()
        self._caller.went_well(Kind.WEBHOOK, log, now, Told())

    def target(self, name: str, log: str) -> tuple[dict[str, Any], Callable[[str], None]]:
        """Return the target of a route to this receiver, and what is given its secret."""
        self._logs[name] = log
        self._kinds[name] = Kind.ROUTE_POSTED

        def note_secret(secret: str) -> None:
            self._verifiers[name] = standardwebhooks.Webhook(secret)

        return self._settings(name), note_secret

    def _settings(self, name: str) -> dict[str, Any]:
        return {
            "url": f"http://{self.host}:{self.port}/{name}",
            "timeout_seconds": TIMEOUT_S,
            "retry_seconds": [RETRY_S] * RETRIES,
            "in_flight_max": IN_FLIGHT,
        }

    async def respond_to(self, got: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        """Respond at random: success, late success, 500, or a dropped connection."""
        invoked, luck = self._caller.history.now(), self._chance.random()
        if not self._is_signed(got):
            self._note(got, invoked, Outcome.FAIL, UNSIGNED)
            await respond_with(401)(writer)
        elif luck < FAILS:
            self._note(got, invoked, Outcome.FAIL, "failed")
            await respond_with(500)(writer)
        elif luck < FAILS + DROPS:
            self._note(got, invoked, Outcome.FAIL, "dropped")
            await self._chance.choice([reset, close])(writer)
        else:
            await self._hesitate(luck - FAILS - DROPS)
            self._note(got, invoked, Outcome.OK, "")
            await respond_with(204)(writer)

    async def _hesitate(self, luck: float) -> None:
        if luck < LATE:
            await asyncio.sleep(TOO_LATE_S)
        elif luck < LATE + SLOW:
            await asyncio.sleep(self._chance.uniform(*SLOWLY_S))

    def _is_signed(self, got: ReceivedRequest) -> bool:
        verifier = self._verifiers[_name(got)]
        try:
            verifier.verify(got.body, got.headers, json_parse=False)
        except standardwebhooks.WebhookVerificationError:
            return False
        return True

    def _note(self, got: ReceivedRequest, invoked: float, outcome: Outcome, code: str) -> None:
        log, headers = self._logs[_name(got)], got.headers
        is_record = headers["millstream-event"] == "stream.record"
        seen = Seen(
            value=got.body.decode(),
            id=got.event_id,
            shard=int(headers.get("millstream-shard", "0")),
            offset=int(headers["millstream-offset"]) if is_record else -1,
            group=headers.get("millstream-group", ""),
        )
        if is_record and outcome is Outcome.OK:
            self.reached[seen.shard] = max(seen.offset + 1, self.reached.get(seen.shard, 0))
        kind = self._kinds.get(_name(got), Kind.POSTED)
        self._caller.note(kind, log, invoked, outcome, 0, code, Told((seen,)))


def _name(got: ReceivedRequest) -> str:
    return httpx.URL(got.path).path.rpartition("/")[2]


@asynccontextmanager
async def receiving_hooks(
    caller: Caller, chance: Random, host: str = "127.0.0.1"
) -> AsyncGenerator[Hooks]:
    """Run a receiver on this event loop, at an address that deliverers reach."""
    hooks = Hooks(caller, chance, host)
    async with running_listener(hooks, host=host):
        yield hooks
