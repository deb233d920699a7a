"""/metrics: totals and objects by name, both formats, and several workers."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from unittest.mock import AsyncMock

import httpx
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from api.cli.up.programs import PROTOCOLS, _remove_gauges
from api.observability.metrics_catalogue import OBJECT_METRICS, STATE_METRICS
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant
from storage.domain.groups.group import GroupKind, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.mirrors.progress import ShardProgress
from storage.domain.names import GroupName, MirrorName, QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.embedded.processes import child_setup
from storage.settings import StorageSettings
from storage.sources.backlog import SourceBacklog
from tests.conditions import PATIENCE_S
from tests.secured_service import running_secured_service

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        yield secured_service


def values(text, parse=parse_text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def value(text, name, **labels):
    return values(text).get((name, tuple(sorted(labels.items()))))


async def test_scrape_reports_contents_of_stores(secured_service):
    await secured_service.storage.queues.send(ORDERS, [NewMessage(b"x")] * 3)
    await secured_service.storage.queues.receive(ORDERS)
    await secured_service.storage.time_series.sample()
    spec = MirrorSpec(url="https://eu.example.com", streams=("eu.*",))
    mirror = (await secured_service.storage.mirrors.put(MirrorName("eu"), spec)).definition
    shard = ShardProgress(
        stream="eu.orders", origin_id="o", shard=0, target_id="t", next_offset=3, tip=10
    )
    await secured_service.storage.mirrors.report(mirror, [shard], "")

    text = (await secured_service.request("GET", "/metrics", await secured_service.key())).text

    of_mirror = {"namespace": "default", "mirror": "eu"}
    assert value(text, "millstream_mirror_lag_records", **of_mirror) == 7
    assert value(text, "millstream_mirror_lag_seconds", **of_mirror) > 0
    assert value(text, "millstream_mirror_origin_silence_seconds", **of_mirror) > 0
    assert value(text, "millstream_mirror_failures", **of_mirror) == 0
    assert value(text, "millstream_queue_messages", state="ready") == 2
    assert value(text, "millstream_queue_messages", state="in_flight") == 1
    assert value(text, "millstream_queues") == 1
    assert value(text, "millstream_messages_dead_lettered_total", reason="rejected") == 0
    assert value(text, "millstream_redis_aof_ok") == 1
    assert value(text, "millstream_redis_evicted_keys_total") == 0
    assert value(text, "millstream_redis_memory_used_bytes") > 0
    assert value(text, "millstream_state_up") == 1
    returned_values = {name for name, _ in values(text)}
    of_stores = {metric.name for metric in STATE_METRICS}
    of_replica_set = {name for name in of_stores if name.startswith("millstream_store_")}
    assert of_stores - returned_values == of_replica_set  # there is one store


async def test_scrape_reports_blocked_sources(secured_service, monkeypatch):
    backlog = SourceBacklog(sources=3, waiting=70, oldest_age_ms=90_000, blocked=1)
    monkeypatch.setattr(
        secured_service.storage.source_backlog, "read", AsyncMock(return_value=backlog)
    )

    text = (await secured_service.request("GET", "/metrics", await secured_service.key())).text

    names = (
        "sources",
        "source_events_waiting",
        "source_oldest_event_age_seconds",
        "sources_blocked",
    )
    assert [value(text, f"millstream_{name}") for name in names] == [3, 70, 90, 1]


async def test_store_round_trips_are_timed(secured_service):
    key = await secured_service.key()
    await secured_service.request("POST", "/v1/queues/orders/messages", key, json={"body": "x"})

    text = (await secured_service.request("GET", "/metrics", key)).text

    assert value(text, "millstream_redis_command_duration_seconds_count", op="write") > 0
    assert value(text, "millstream_postgres_query_duration_seconds_count", op="read") > 0
    assert value(text, "millstream_postgres_pool_waiting") == 0


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object"])
async def test_openmetrics_is_served_on_request(secured_service, path):
    await secured_service.storage.time_series.sample()

    answer = await secured_service.request(
        "GET", path, await secured_service.key(), headers=OPENMETRICS
    )
    plain = await secured_service.request("GET", path, await secured_service.key())

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    assert values(answer.text, parse_openmetrics)
    assert plain.headers["content-type"].startswith("text/plain")
    assert "# EOF" not in plain.text


async def test_concurrent_scrapes_share_one_store_query(secured_service, monkeypatch):
    key, asked = await secured_service.key(), []
    figures = secured_service.storage.health.hot_figures

    async def counted():
        asked.append(1)
        return await figures()

    monkeypatch.setattr(secured_service.storage.health, "hot_figures", counted)
    for _ in range(5):
        await secured_service.request("GET", "/metrics", key)

    assert len(asked) == 1


async def test_objects_are_reported_by_name(secured_service):
    storage = secured_service.storage
    await storage.groups.put(
        GroupName("readers"), GroupSpec(stream="clicks", kind=GroupKind.SIMPLE)
    )
    await storage.streams.append(StreamName("clicks"), [Record(b"x")] * 4)
    await storage.queues.send(ORDERS, [NewMessage(b"x")] * 2)
    [received] = await storage.queues.receive(ORDERS)
    await storage.queues.settle(ORDERS, [Settlement(received.receipt_handle, SettleAction.ACK)])
    await storage.queues._acknowledge_times.report()
    await storage.time_series.sample()

    text = (
        await secured_service.request("GET", "/metrics/per-object", await secured_service.key())
    ).text
    queues = (
        await secured_service.request(
            "GET", "/metrics/per-object?kind=queues", await secured_service.key()
        )
    ).text
    other = (
        await secured_service.request(
            "GET", "/metrics/per-object?prefix=cl", await secured_service.key()
        )
    ).text

    at = {"namespace": "default", "queue": "orders"}
    assert value(text, "millstream_object_queue_messages", **at, state="ready") == 1
    median = value(text, "millstream_object_queue_acknowledge_seconds", **at, quantile="0.5")
    assert 0 <= median < 60
    of_stream = {"namespace": "default", "stream": "clicks"}
    assert value(text, "millstream_object_stream_last_offset", **of_stream, shard="0") == 3
    assert value(text, "millstream_object_stream_records_in_total", **of_stream) == 4
    of_group = {**of_stream, "group": "readers"}
    assert value(text, "millstream_object_consumer_group_lag_records", **of_group) == 4
    assert value(text, "millstream_objects_truncated", kind="queues") == 0
    returned_values = {name for name, _ in values(text)}
    unsaid = {"millstream_object_consumer_group_last_commit_timestamp_seconds"}
    assert {object_metric.name for object_metric in OBJECT_METRICS} - unsaid <= returned_values
    assert "stream" not in queues.replace("millstream_", "")
    assert "orders" not in other
    assert "clicks" in other


async def test_objects_hidden_from_caller_are_not_reported(secured_service):
    await secured_service.storage.catalog.put_queue(QueueName("secret"), QueueSpec())
    await secured_service.storage.time_series.sample()
    some = Grant(Effect.ALLOW, ("queue:list", "metrics:read"), ("orders*",))
    key = await secured_service.key(Rights(grants=(some,)))

    answer = await secured_service.request("GET", "/metrics/per-object", key)
    whole = await secured_service.request("GET", "/metrics", key)

    assert "orders" in answer.text
    assert "secret" not in answer.text
    assert "clicks" not in answer.text
    assert whole.status_code == 403


async def test_object_count_is_limited_and_truncation_is_reported(secured_service, monkeypatch):
    monkeypatch.setattr(limits, "OBJECT_METRICS_MAX", 2)
    for nth in range(3):
        await secured_service.storage.catalog.put_queue(QueueName(f"q{nth}"), QueueSpec())
    await secured_service.storage.time_series.sample()

    text = (
        await secured_service.request(
            "GET", "/metrics/per-object?prefix=q", await secured_service.key()
        )
    ).text

    assert value(text, "millstream_objects_truncated", kind="queues") == 1
    assert '"q1"' in text
    assert '"q2"' not in text


UVICORN = (sys.executable, "-m", "uvicorn", "api.app:create_app", "--factory")


@contextmanager
def worker(environment):
    """Run a process of the service on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            [*UVICORN, f"--fd={listener.fileno()}", "--log-level=warning", *PROTOCOLS],
            env={**os.environ, **environment},
            pass_fds=[listener.fileno()],
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        yield url, process
    finally:
        process.kill()
        process.wait()


def wait_for(url):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/readyz", timeout=30).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the worker did not become ready")


def send(url, count):
    for _ in range(count):
        sent = httpx.post(f"{url}/v1/queues/orders/messages", json={"body": "x"})
        assert sent.status_code < 300


def scraped(url):
    return httpx.get(f"{url}/metrics").text


SENT = ("millstream_messages_received_total", {"kind": "queue", "protocol": "http"})


async def make_queue_and_measure(settings):
    async with open_storage(settings) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
        await storage.time_series.sample()


def scraped_once(url, count):
    """Scrape a worker once every worker has published its counts, twice a second each."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        text = scraped(url)
        if value(text, SENT[0], **SENT[1]) >= count:
            return text
        time.sleep(0.1)
    raise AssertionError("not all was handed on")


def test_workers_are_summed_and_killed_ones_stay_counted(redis_url, database_url, tmp_path):
    directory = tmp_path / "metrics"
    directory.mkdir()
    environment = {
        "REDIS_URL": redis_url,
        "DATABASE_URL": database_url,
        "PROMETHEUS_MULTIPROC_DIR": str(directory),
    }
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    asyncio.run(make_queue_and_measure(settings))
    with worker(environment) as (first, doomed), worker(environment) as (second, _):
        wait_for(first)
        wait_for(second)
        send(first, 3)
        send(second, 2)

        both = [scraped_once(first, 5), scraped_once(second, 5)]
        doomed.kill()
        doomed.wait()
        _remove_gauges(doomed.pid, directory)
        alone = scraped(second)
        with worker(environment) as (third, _):
            wait_for(third)
            send(third, 1)
            replaced = [scraped_once(third, 6), scraped_once(second, 6)]

    assert [value(text, SENT[0], **SENT[1]) for text in (*both, alone)] == [5, 5, 5]
    assert [value(text, SENT[0], **SENT[1]) for text in replaced] == [6, 6]
    for text in (*both, alone, *replaced):
        assert value(text, "millstream_queues") == 1
        assert text.count("\nmillstream_build_info{") == 1
    earlier = {at: count for at, count in values(both[0]).items() if at[0].endswith("_total")}
    for text in (alone, *replaced):
        now = values(text)
        assert all(now[at] >= count for at, count in earlier.items())
