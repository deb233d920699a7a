"""Replicated stores of a data directory: what they remember, and how they start."""

import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from storage.embedded.errors import EmbeddedServerError
from storage.embedded.replicated_stores import (
    StoreMember,
    StoreRecord,
    create_record,
    member_pids,
    members,
    read_record,
)
from storage.embedded.servers import running
from storage.embedded.valkey import running_valkey
from storage.redis.member_settings import MemberSettings
from tests.conditions import wait_until

STORES = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose only store has a message; then it is replicated."""
    data = tmp_path_factory.mktemp("stores")
    with running_valkey(data) as url, redis.Redis.from_url(url) as client:
        client.set("message", "kept")
    return data


@pytest.fixture(scope="module")
def record(data: Path) -> StoreRecord:
    return create_record(data, STORES)


@pytest.fixture(scope="module")
def stores(data: Path, record: StoreRecord) -> Iterator[list[StoreMember]]:
    started = members(data, record, memory_bytes=64 << 20)
    with ExitStack() as stack:
        for store in started:
            stack.enter_context(running(store))
        yield started


@pytest.fixture
def clients(stores: list[StoreMember]) -> Iterator[list[redis.Redis]]:
    with ExitStack() as stack:
        urls = [store.url for store in stores]
        yield [
            stack.enter_context(redis.Redis.from_url(url, decode_responses=True)) for url in urls
        ]


def test_members_are_remembered_and_private(data, record, stores):
    assert read_record(data) == record
    assert [store.port for store in stores] == list(record.ports)
    assert stat.S_IMODE((data / "stores.json").stat().st_mode) == 0o600
    assert record.password in record.url
    assert record.url.endswith(f"@{','.join(record.addresses)}/0")


def test_first_member_is_former_store_of_directory(clients):
    assert [client.get("message") for client in clients] == ["kept", None, None]


def test_started_member_accepts_no_write(clients):
    for client in clients:
        with pytest.raises(redis.ReadOnlyError):
            client.set("message", "changed")


def test_member_wants_password(stores):
    with (
        redis.Redis(port=stores[0].port, retry=Retry(NoBackoff(), 0)) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
        ("repl-ping-replica-period", "1"),
        ("repl-timeout", "5"),
        ("repl-diskless-load", "disabled"),
        ("repl-backlog-size", str(8 << 20)),
        ("bind", "127.0.0.1"),
    ],
)
def test_member_has_settings_of_replication(clients, name, value):
    assert [client.config_get(name) for client in clients] == [{name: value}] * STORES


def test_replica_output_is_never_dropped(clients):
    assert "slave 0 0 0" in clients[0].config_get("client-output-buffer-limit").popitem()[1]


def test_promoted_member_fills_others(clients, stores):
    first, *others = clients
    first.replicaof("NO", "ONE")
    for client in others:
        client.replicaof("127.0.0.1", stores[0].port)

    wait_until(lambda: [client.get("message") for client in clients] == ["kept"] * STORES)


def test_process_ids_are_those_of_running_members(data, stores, clients):
    expected = {
        f"127.0.0.1:{store.port}": client.info("server")["process_id"]
        for store, client in zip(stores, clients, strict=True)
    }

    assert member_pids(data) == expected


def test_process_ids_are_none_without_replicated_stores(tmp_path):
    assert member_pids(tmp_path) == {}


async def test_settings_of_members_have_no_fault(record, clients):
    assert await MemberSettings(record.url).faults(record.addresses) == []


async def test_faults_in_settings_of_members_are_named(record, clients):
    clients[0].config_set("appendfsync", "everysec")
    clients[1].config_set("maxmemory", 32 << 20)
    try:
        faults = await MemberSettings(record.url).faults((*record.addresses, "127.0.0.1:1"))
    finally:
        clients[0].config_set("appendfsync", "always")
        clients[1].config_set("maxmemory", 64 << 20)

    assert faults == [
        f"{record.addresses[0]} has appendfsync everysec, not always",
        f"maxmemory differs: {32 << 20}, {64 << 20}",
    ]


def test_unreadable_record_is_named(tmp_path):
    (tmp_path / "stores.json").write_text("{}")

    with pytest.raises(EmbeddedServerError, match=r"cannot read .*stores\.json"):
        read_record(tmp_path)
