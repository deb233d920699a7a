"""kill -9 of deliverers: nothing is lost, repeats keep their id, and order is kept."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import psycopg
import pytest

from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.groups.group import GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName, WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.webhooks import Source, WebhookSpec
from storage.embedded.processes import child_setup
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.webhook_receiver import Receiver, respond_with, running_receiver

ORDERS, CLICKS, READERS = QueueName("orders"), StreamName("clicks"), GroupName("readers")
MESSAGES, RECORDS = 1_500, 800
IN_FLIGHT = 8


class Deliverers:
    """Any number of `millstream deliver` processes."""

    def __init__(self, settings: StorageSettings) -> None:
        self._environment = {
            **os.environ,
            "REDIS_URL": settings.redis_url,
            "DATABASE_URL": settings.database_url,
            "MILLSTREAM_SECRET_KEYS": settings.secret_keys[0],
            "MILLSTREAM_WEBHOOK_ALLOW": "127.0.0.1",
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "api.cli", "deliver"],
            env=self._environment,
            preexec_fn=child_setup(signal.SIGKILL),
        )
        self._running.append(process)
        return process

    def kill(self) -> None:
        """Kill all running deliverers."""
        for process in self._running:
            process.kill()
            process.wait()
        self._running.clear()


@pytest.fixture
def settings(redis_url, database_url) -> StorageSettings:
    return StorageSettings(
        redis_url=redis_url,
        database_url=database_url,
        secret_keys=(new_key(),),
        webhook_allow=("127.0.0.1",),
    )


@pytest.fixture
def deliverers(settings: StorageSettings) -> Iterator[Deliverers]:
    deliverers = Deliverers(settings)
    yield deliverers
    deliverers.kill()


@pytest.mark.one_store
async def test_killed_deliverers_lose_nothing_and_keep_order(settings, deliverers):
    async with open_storage(settings) as storage, running_receiver() as receiver:
        sent = await _fill(storage)
        receiver.default_behaviour = _in_a_moment
        for _ in range(2):
            deliverers.start()
        await _until(lambda: len(_select(settings, "select deliverer from deliverers")) == 2)
        await _put_webhooks(storage, receiver)
        await receiver.until(600, PATIENCE_S)
        holders = _select(settings, "select holder from webhooks")

        deliverers.kill()
        at_the_kill = len(receiver.requests)
        successor = deliverers.start()
        await _until_all_is_done(storage)

        messages = [
            got for got in receiver.requests if got.headers["millstream-event"] == "queue.message"
        ]
        records = [
            got for got in receiver.requests if got.headers["millstream-event"] == "stream.record"
        ]
        assert at_the_kill < MESSAGES + RECORDS
        assert len(set(holders)) == 2
        assert {got.event_id: got.body for got in messages} == sent
        _check_order(records)
        assert len(messages) - MESSAGES <= 2 * IN_FLIGHT  # what one deliverer had in flight
        stats = await storage.queues.stats(ORDERS)
        assert (stats.acknowledged, stats.dead_lettered) == (MESSAGES, 0)
        successor.terminate()
        assert successor.wait(PATIENCE_S) == 0


async def _in_a_moment(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.003)
    await respond_with()(writer)


async def _fill(storage: Storage) -> dict[str, bytes]:
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    bodies = [b"%d" % number for number in range(MESSAGES)]
    sent = []
    for first in range(0, MESSAGES, 500):
        messages = [NewMessage(body) for body in bodies[first : first + 500]]
        sent += await storage.queues.send(ORDERS, messages)
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
    await storage.groups.put(READERS, GroupSpec(stream=CLICKS.name))
    records = [Record(b"%d" % number, key=f"user-{number % 16}") for number in range(RECORDS)]
    await storage.streams.append(CLICKS, records)
    return {one.message_id: body for one, body in zip(sent, bodies, strict=True)}


async def _put_webhooks(storage: Storage, receiver: Receiver) -> None:
    for name, word in (("orders", "queue:orders"), ("readers", "group:readers")):
        spec = WebhookSpec(source=Source.of(word), url=receiver.url, in_flight_max=IN_FLIGHT)
        await storage.webhooks.put(WebhookName(name), spec)


def _select(settings: StorageSettings, query: str) -> list[str]:
    with psycopg.connect(settings.database_url) as connection:
        return [str(row[0]) for row in connection.execute(query.encode())]


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110  what is waited for is in another process
            await asyncio.sleep(0.1)


async def _until_all_is_done(storage: Storage) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            stats = await storage.queues.stats(ORDERS)
            lag = sum(shard.records for shard in await storage.groups.lags.by_shard(READERS))
            if stats.acknowledged == MESSAGES and not lag:
                return
            await asyncio.sleep(0.2)


def _check_order(records) -> None:
    """Check that each record was delivered, first deliveries in shard order."""
    first = list(dict.fromkeys(got.event_id for got in records))
    assert len(first) == RECORDS
    shards: dict[str, list[int]] = {}
    for event_id in first:
        _, shard, offset = event_id.split("-")
        shards.setdefault(shard, []).append(int(offset))
    for offsets in shards.values():
        assert offsets == list(range(len(offsets)))
