"""A store that Sentinel watches: the service follows its fail-over."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain.errors import MillstreamError
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.embedded.binaries import find_valkey
from storage.embedded.processes import child_setup, stop
from storage.redis.discovery import backup_url
from storage.settings import StorageSettings
from tests.replica_sets import PASSWORD, Store, follow, free_ports, running_stores

pytestmark = pytest.mark.one_store
NAME = "orders"
FAIL_OVER_S_MAX = 20.0
CONFIGURATION = """
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {name} 127.0.0.1 {primary} 1
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} 500
sentinel failover-timeout {name} 5000
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    with running_stores(tmp_path, 2) as stores:
        follow(stores[0], stores[1:], epoch=0)
        stores[0].run("DEL", "ms:store")
        yield stores


@pytest.fixture
def url(stores: list[Store], tmp_path: Path) -> Iterator[str]:
    [port] = free_ports(1)
    primary = stores[0].address.rpartition(":")[2]
    file = tmp_path / "sentinel.conf"
    file.write_text(
        CONFIGURATION.format(
            port=port, folder=tmp_path, name=NAME, primary=primary, password=PASSWORD
        )
    )
    process = subprocess.Popen(
        [str(find_valkey("bundled")), str(file), "--sentinel"],
        stdout=subprocess.DEVNULL,
        preexec_fn=child_setup(signal.SIGTERM),
    )
    try:
        _until_replica_is_known(port)
        yield f"redis+sentinel://:{PASSWORD}@127.0.0.1:{port}/{NAME}"
    finally:
        stop(process, signal.SIGTERM)


def _until_replica_is_known(port: int) -> None:
    deadline = monotonic() + FAIL_OVER_S_MAX
    with redis.Redis(port=port) as sentinel:
        while monotonic() < deadline:
            try:
                if sentinel.execute_command("SENTINEL", "REPLICAS", NAME):
                    return
            except redis.RedisError:
                pass
            sleep(0.05)
    pytest.fail("the Sentinel knows no replica")


async def test_messages_are_sent_to_primary_that_sentinel_names(stores, url, database_url):
    settings = StorageSettings(redis_url=url, database_url=database_url)
    orders = QueueName("orders")
    async with open_storage(settings) as storage:
        await storage.catalog.put_queue(orders, QueueSpec())
        await storage.queues.send(orders, [NewMessage(b"one")])
        assert backup_url(url).rpartition("@")[2] == f"{stores[0].address}/0"

        stores[0].kill()
        deadline = monotonic() + FAIL_OVER_S_MAX
        while True:
            try:
                await storage.queues.send(orders, [NewMessage(b"two")])
                break
            except MillstreamError:
                assert monotonic() < deadline

        assert backup_url(url).rpartition("@")[2] == f"{stores[1].address}/0"
        received = await storage.queues.receive(orders)
        assert {message.body for message in received} <= {b"one", b"two"}
