"""Quotas over real stores: processes share a limit, and namespaces do not."""

import asyncio
from contextlib import AsyncExitStack

import pytest
import redis

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.errors import (
    NamespaceInUse,
    NamespaceNotFound,
    PreconditionFailed,
    QuotaExceeded,
    QuotaReached,
    QuotaTooSmall,
    StorageUnavailable,
)
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import NO_QUOTAS, Quotas, Rates, ResourceRates
from storage.domain.streams.stream import StreamSpec
from storage.embedded.valkey import running_valkey
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S

ACME, RIVAL = Principal("a", "acme", credential="k1"), Principal("r", "rival", credential="k2")
TEN = Rates(calls_per_second=10)


async def spend(storage, principal, resource="queue/orders", **cost):
    waiting = storage.quotas.acquire(principal, resource, **cost)
    if waiting is not None:
        await waiting


async def passes(storage, principal, times, resource="queue/orders", **cost):
    """Count how many of so many calls pass now."""
    passed = 0
    for _ in range(times):
        try:
            await spend(storage, principal, resource, **cost)
        except QuotaExceeded:
            continue
        passed += 1
    return passed


@pytest.fixture
async def acme(engines):
    """A namespace with ten calls a second."""
    await engines.namespaces.put("acme", Quotas(rates=TEN))
    return engines


async def test_namespace_without_quotas_never_waits(engines):
    assert engines.quotas.acquire(Principal("p"), "queue/orders", messages=10**9) is None


async def test_rate_allows_burst_then_rate(acme, clock):
    assert await passes(acme, ACME, 25) == 10

    clock.advance(ms=300)

    assert await passes(acme, ACME, 25) == 3


async def test_rejection_names_policy_and_retry_time(acme):
    await passes(acme, ACME, 10)

    with pytest.raises(QuotaExceeded) as refused:
        await spend(acme, ACME)

    assert refused.value.facts == {
        "policy": "namespace",
        "limit": 10.0,
        "unit": "calls",
        "retry_after_seconds": 1,
    }


async def test_flooding_namespace_affects_no_other_and_no_store_calls(acme, clock, redis_url):
    await acme.namespaces.put("rival", Quotas(rates=TEN))
    await passes(acme, ACME, 20)

    with redis.Redis.from_url(redis_url) as client:
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        flooded = await passes(acme, ACME, 2_000)
        after = client.info("commandstats")["cmdstat_evalsha"]["calls"]

    assert flooded == 0
    assert after - before <= 2
    for _ in range(10):
        assert await passes(acme, RIVAL, 1) == 1
        clock.advance(ms=100)
        await passes(acme, ACME, 50)


async def test_messages_and_bytes_are_limited_like_calls(engines):
    rates = Rates(messages_per_second=100, bytes_per_second=1_000)
    await engines.namespaces.put("acme", Quotas(rates=rates))

    assert await passes(engines, ACME, 10, messages=30, size_bytes=10) == 3
    assert await passes(engines, ACME, 10, messages=1, size_bytes=400) == 2
    assert await passes(engines, ACME, 10) == 10  # neither: a receive, for example


async def test_call_larger_than_burst_is_rejected_as_quota_too_small(engines):
    await engines.namespaces.put("acme", Quotas(rates=Rates(bytes_per_second=1_000)))

    with pytest.raises(QuotaTooSmall) as refused:
        await spend(engines, ACME, size_bytes=1_001)

    assert refused.value.facts["limit"] == 1_000
    assert not refused.value.code.retryable


async def test_large_call_passes_among_rejected_small_ones(engines, clock):
    """Rejected calls take no tokens, so that enough accumulate."""
    await engines.namespaces.put("acme", Quotas(rates=Rates(messages_per_second=10)))
    assert await passes(engines, ACME, 1, messages=10) == 1

    for _ in range(9):
        clock.advance(ms=100)
        assert await passes(engines, ACME, 3, messages=10) == 0
    clock.advance(ms=100)

    assert await passes(engines, ACME, 1, messages=10) == 1


async def test_each_resource_matching_pattern_has_its_own_bucket(engines):
    globs = (ResourceRates("queue/orders-*", TEN),)
    await engines.namespaces.put("acme", Quotas(resources=globs))

    assert await passes(engines, ACME, 15, "queue/orders-eu") == 10
    assert await passes(engines, ACME, 15, "queue/orders-us") == 10
    assert await passes(engines, ACME, 15, "queue/other") == 15
    assert await passes(engines, ACME, 15, "") == 15


async def test_key_has_its_own_rate_beside_its_namespace(acme):
    slow = Principal("s", "acme", credential="k3", rates=Rates(calls_per_second=4))

    assert await passes(acme, slow, 10) == 4
    assert await passes(acme, ACME, 10) == 6


async def test_key_rate_is_shared_by_equal_principals(acme, clock):
    slow = Principal("s", "acme", credential="k3", rates=Rates(calls_per_second=4))
    again = Principal("s", "acme", credential="k3", rates=Rates(calls_per_second=4))

    assert await passes(acme, slow, 3) + await passes(acme, again, 3) == 4


@pytest.fixture
async def three(settings, clock):
    """Three processes of one deployment."""
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(open_storage(settings, clock=clock)) for _ in range(3)
        ]
        await opened[0].namespaces.put("acme", Quotas(rates=Rates(calls_per_second=200)))
        for one in opened[1:]:
            await one.namespaces.read_again()
        yield opened


async def test_processes_share_limit_within_documented_bound(three, clock):
    """At most rate x (seconds + burst), plus leased tokens (none here), and hardly less."""
    passed = 0
    for _ in range(40):
        results = await asyncio.gather(*(passes(one, ACME, 20) for one in three))
        passed += sum(results)
        clock.advance(ms=50)

    seconds, rate, lease = 2.0, 200, 20
    assert passed <= rate * (seconds + 1)
    assert passed >= rate * (seconds + 1) - 3 * lease - 50 * rate / 1_000


async def test_idle_process_takes_little_from_busy_ones(three, clock):
    busy, *idle = three
    passed = 0
    for _ in range(40):
        passed += await passes(busy, ACME, 25)
        for one in idle:
            passed += await passes(one, ACME, 1)
        clock.advance(ms=100)

    assert passed >= 200 * 4


async def test_concurrent_callers_share_token_lease(engines, redis_url):
    await engines.namespaces.put("acme", Quotas(rates=Rates(calls_per_second=100_000)))
    await passes(engines, ACME, 20)

    with redis.Redis.from_url(redis_url) as client:
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        await asyncio.gather(*(spend(engines, ACME) for _ in range(5_000)))
        after = client.info("commandstats")["cmdstat_evalsha"]["calls"]

    assert after - before <= 20


async def test_first_concurrent_callers_all_pass_within_limit(engines):
    """No tokens are leased yet, and each caller would take them from the others."""
    await engines.namespaces.put("acme", Quotas(rates=Rates(calls_per_second=100)))

    results = await asyncio.gather(*(passes(engines, ACME, 1) for _ in range(150)))

    assert sum(results) == 100


async def test_call_rejected_by_one_policy_uses_no_tokens_of_others(engines, clock):
    globs = (ResourceRates("queue/small", Rates(calls_per_second=2)),)
    await engines.namespaces.put("acme", Quotas(rates=TEN, resources=globs))

    assert await passes(engines, ACME, 20, "queue/small") == 2
    assert await passes(engines, ACME, 20, "queue/other") == 8


async def test_cancelled_waiting_caller_uses_no_tokens(acme):
    waiting = asyncio.ensure_future(spend(acme, ACME))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert await passes(acme, ACME, 20) >= 9


async def test_changed_limit_applies_locally_first_and_soon_elsewhere(three):
    first, second, _ = three
    await first.namespaces.put("acme", Quotas(rates=Rates(calls_per_second=1)))
    await passes(first, ACME, 1)

    assert await passes(first, ACME, 50) == 0
    changed = asyncio.Event()
    second.namespaces.on_change.append(changed.set)
    if second.namespaces.table["acme"].quotas.rates.calls_per_second != 1:
        await asyncio.wait_for(changed.wait(), PATIENCE_S)
    assert await passes(second, ACME, 50) == 0


async def test_rate_keys_are_namespaced_and_expire(acme, redis_url):
    await passes(acme, ACME, 1)

    with redis.Redis.from_url(redis_url) as client:
        [key] = client.scan_iter("ms:*:rate")
        assert key == b"ms:acme:{namespace}:rate"
        assert 0 < client.ttl(key) <= 3_602


async def test_lost_rates_allow_one_more_burst(acme, clock, redis_url):
    await passes(acme, ACME, 10)
    with redis.Redis.from_url(redis_url) as client:
        client.delete("ms:acme:{namespace}:rate")
    clock.advance(ms=100)

    assert await passes(acme, ACME, 30) <= 10 + 1


@pytest.mark.one_store
async def test_rates_survive_store_restart(database_url, clock, short_folder):
    with running_valkey(short_folder) as url:
        settings = StorageSettings(redis_url=url, database_url=database_url)
        async with open_storage(settings, clock=clock) as storage:
            await storage.namespaces.put("acme", Quotas(rates=TEN))
            assert await passes(storage, ACME, 20) == 10

    clock.advance(ms=100)
    async with open_storage(settings, clock=clock) as storage:
        with pytest.raises(StorageUnavailable):
            await spend(storage, ACME)
        with running_valkey(short_folder):
            assert await passes(storage, ACME, 20) == 1


# Namespaces


async def test_unknown_namespace_is_rejected(engines):
    nowhere = Principal("n", "nowhere")

    with pytest.raises(NamespaceNotFound, match="nowhere"):
        await spend(engines, nowhere)
    with pytest.raises(NamespaceNotFound, match="nowhere"):
        await engines.catalog.put_queue(QueueName("orders", "nowhere"), QueueSpec())


async def test_namespace_created_by_another_process_is_usable(three):
    first, second, _ = three
    await first.namespaces.put("fresh", NO_QUOTAS)

    await spend(second, Principal("f", "fresh"))


async def test_stale_namespace_version_is_not_replaced(engines):
    made, created, _ = await engines.namespaces.put("acme", NO_QUOTAS, create_only=True)
    same, *_ = await engines.namespaces.put("acme", NO_QUOTAS)
    changed, *_ = await engines.namespaces.put("acme", Quotas(queues_max=1), if_match=1)

    assert (created, made.version, same.version, changed.version) == (True, 1, 1, 2)
    with pytest.raises(PreconditionFailed):
        await engines.namespaces.put("acme", NO_QUOTAS, if_match=1)
    with pytest.raises(PreconditionFailed):
        await engines.namespaces.put("acme", NO_QUOTAS, create_only=True)


async def test_empty_namespace_is_deleted_and_its_name_is_free(engines):
    made, *_ = await engines.namespaces.put("acme", NO_QUOTAS)

    await engines.namespaces.delete("acme")

    with pytest.raises(NamespaceNotFound):
        await engines.namespaces.get("acme")
    again, created, _ = await engines.namespaces.put("acme", NO_QUOTAS)
    assert created
    assert again.account_id != made.account_id


async def test_nonempty_namespace_is_not_deleted_and_says_why(engines):
    await engines.namespaces.put("acme", NO_QUOTAS)
    await engines.catalog.put_queue(QueueName("orders", "acme"), QueueSpec())
    await engines.catalog.put_stream(StreamName("clicks", "acme"), StreamSpec())

    with pytest.raises(NamespaceInUse) as refused:
        await engines.namespaces.delete("acme")
    await engines.catalog.delete_queue(QueueName("orders", "acme"))
    with pytest.raises(NamespaceInUse) as later:
        await engines.namespaces.delete("acme")

    assert refused.value.facts["holds"] == {"queues": 1, "streams": 1}
    assert later.value.facts["holds"] == {"streams": 1, "deleted_not_swept": 1}


async def test_namespace_is_deletable_once_contents_are_forgotten(engines, clock):
    orders = QueueName("orders", "acme")
    await engines.namespaces.put("acme", NO_QUOTAS)
    await engines.catalog.put_queue(orders, QueueSpec())
    await engines.queues.send(orders, [NewMessage(b"one")])
    await engines.catalog.delete_queue(orders)

    clock.advance(ms=limits.TOMBSTONE_MS + 1)
    await engines.maintenance.tombstone_deleted()
    await engines.namespaces.delete("acme")

    assert "acme" not in engines.namespaces.table


async def test_default_namespace_always_exists(engines):
    with pytest.raises(NamespaceInUse, match="default"):
        await engines.namespaces.delete("default")


async def test_queue_and_stream_limits_hold_under_concurrency(engines):
    await engines.namespaces.put("acme", Quotas(queues_max=3, streams_max=0))

    made = await asyncio.gather(
        *(engines.catalog.put_queue(QueueName(f"q{n}", "acme"), QueueSpec()) for n in range(6)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, QuotaReached) for one in made) == 3
    await engines.catalog.put_queue(QueueName("q0", "default"), QueueSpec())
    with pytest.raises(QuotaReached, match="0 streams"):
        await engines.catalog.put_stream(StreamName("s", "acme"), StreamSpec())


# Resource counts and connections


async def test_connections_are_counted_across_processes(three):
    first, second, third = three
    await first.namespaces.put("acme", Quotas(connections_max=3))
    for one in (second, third):
        await one.namespaces.read_again()

    await first.connection_slots.acquire("acme")
    await second.connection_slots.acquire("acme")
    await second.connection_slots.acquire("acme")
    with pytest.raises(QuotaExceeded) as refused:
        await third.connection_slots.acquire("acme")
    second.connection_slots.release("acme")
    await second.connection_slots.publish()

    assert refused.value.facts["policy"] == "connections"
    await third.connection_slots.acquire("acme")


async def test_connections_of_killed_process_are_released(three, clock):
    killed, other, _ = three
    await killed.namespaces.put("acme", Quotas(connections_max=1))
    await other.namespaces.read_again()
    await killed.connection_slots.acquire("acme")

    with pytest.raises(QuotaExceeded):
        await other.connection_slots.acquire("acme")
    clock.advance(ms=limits.CONNECTION_SLOTS_TTL_MS)

    await other.connection_slots.acquire("acme")
