"""`millstream backup` and `millstream restore` with stores found by data directory."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.up.data_directory import acquire_lock
from storage.bootstrap import open_storage
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.embedded.postgres import PostgresServer
from storage.embedded.servers import running
from storage.embedded.valkey import ValkeyServer
from storage.settings import StorageSettings
from tests.cli_commands import millstream

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")


@pytest.fixture
def place(monkeypatch) -> Iterator[Path]:
    """A folder whose path is short enough for sockets, without any settings."""
    for name in ("REDIS_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="ms-") as place:
        monkeypatch.chdir(place)
        yield Path(place)


@pytest.fixture
def named(redis_url, database_url, place) -> StorageSettings:
    """Stores with a message in them."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)

    async def send():
        async with open_storage(settings) as storage:
            await storage.catalog.put_queue(ORDERS, QueueSpec())
            await storage.queues.send(ORDERS, [NewMessage(b"one")])

    asyncio.run(send())
    return settings


def bodies(settings):
    async def receive():
        async with open_storage(settings) as storage:
            return [
                message.body for message in await storage.queues.receive(ORDERS, messages_max=10)
            ]

    return asyncio.run(receive())


def test_backup_by_url_is_restored_into_data_directory(named, place, monkeypatch):
    data = place / "data"
    with monkeypatch.context() as environment:
        environment.setenv("REDIS_URL", named.redis_url)
        environment.setenv("DATABASE_URL", named.database_url)
        by_url = millstream("backup", "by-url", "--json")
        back_to_the_same = millstream("restore", "by-url")

    to_data = millstream("restore", "by-url", "--data", str(data))
    of_stopped = millstream("backup", "of-stopped", "--data", str(data), "--json")
    again = millstream("restore", "by-url", "--data", str(data))
    valkey, postgres = ValkeyServer(data), PostgresServer(data)
    with acquire_lock(data), running(valkey), running(postgres):
        of_running = millstream("backup", "of-running", "--data", str(data), "--json")
        in_use = millstream("restore", "by-url", "--data", str(data))
        settings = StorageSettings(redis_url=valkey.url, database_url=postgres.url)
        received = bodies(settings)

    assert [by_url.code, to_data.code, of_stopped.code, of_running.code] == [0, 0, 0, 0]
    assert by_url.json["rows"] == of_stopped.json["rows"] == of_running.json["rows"]
    assert "Restored by-url" in to_data.out
    assert received == [b"one"]
    for refused, why in (
        (back_to_the_same, "the database is not empty"),
        (again, "already contains Millstream data"),
        (in_use, "a Millstream is running on"),
    ):
        assert (refused.code, refused.out) == (1, "")
        assert why in refused.err


def test_errors_are_one_line_and_create_nothing(place):
    nowhere = millstream("backup", "b", "--data", "nothing")
    no_backup = millstream("restore", ".", "--data", "new")

    assert (nowhere.code, no_backup.code) == (4, 1)
    assert "no Millstream data in nothing" in nowhere.err
    assert ". is not a complete backup" in no_backup.err
    assert list(place.iterdir()) == []


def test_archive_verify_creates_nothing_when_none_is_found(place):
    nowhere = millstream("archive", "verify", "--data", "nothing")

    assert (nowhere.code, nowhere.out) == (4, "")
    assert nowhere.err.startswith(
        "millstream: no Millstream is running on nothing: start it, specify --data"
    )
    assert list(place.iterdir()) == []


def test_unavailable_stores_are_reported(place, monkeypatch):
    monkeypatch.setenv("REDIS_URL", f"unix://{place}/none.sock")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://postgres@/none?host={place}")

    away = millstream("backup", "b")

    assert (away.code, list(place.iterdir())) == (4, [])
    assert "The store is unreachable" in away.err
