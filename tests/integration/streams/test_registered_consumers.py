"""Registered consumers and account settings, over a real Postgres."""

import asyncio

import pytest
from msgspec.structs import replace

from storage.domain.names import StreamName
from storage.domain.quotas import NO_QUOTAS
from storage.domain.streams.stream import StreamSpec

pytestmark = pytest.mark.one_store

ORDERS = StreamName("orders")


@pytest.fixture
async def stream(engines):
    return (await engines.catalog.put_stream(ORDERS, StreamSpec()))[0]


@pytest.fixture
def registrations(engines):
    return engines.registered_consumers


async def test_consumer_keeps_its_registration_time(registrations, stream, clock):
    made = await registrations.register(stream, "app", {"a": "b"}, 5)

    assert await registrations.find(stream, "app") == made
    assert (made.name, made.tags, made.policy) == ("app", {"a": "b"}, None)
    assert made.registered_at_ms == clock.now_ms()


async def test_consumers_are_listed_in_byte_order(registrations, stream):
    for name in ("b", "B", "a", "_"):
        await registrations.register(stream, name, {}, 5)

    first = await registrations.page(stream, limit=2)
    rest = await registrations.page(stream, after=first[-1].name)

    assert [one.name for one in [*first, *rest]] == ["B", "_", "a", "b"]
    assert await registrations.count(stream) == 4


async def test_consumer_limit_holds_under_concurrent_registration(registrations, stream):
    made = await asyncio.gather(
        *(registrations.register(stream, f"app-{number}", {}, 3) for number in range(10))
    )

    assert sum(one == "too_many" for one in made) == 7
    assert await registrations.count(stream) == 3


async def test_duplicate_consumer_name_is_rejected(registrations, stream):
    first = await registrations.register(stream, "app", {}, 5)

    assert await registrations.register(stream, "app", {}, 5) == "exists"
    assert await registrations.find(stream, "app") == first


async def test_concurrent_changes_all_take_effect(registrations, stream):
    await registrations.register(stream, "app", {}, 5)

    await asyncio.gather(
        *(
            registrations.change(
                stream, "app", lambda one, n=number: replace(one, tags={**one.tags, str(n): ""})
            )
            for number in range(10)
        )
    )

    found = await registrations.find(stream, "app")
    assert found.tags.keys() == {str(number) for number in range(10)}


async def test_unknown_consumer_is_neither_changed_nor_removed(registrations, stream):
    assert await registrations.change(stream, "app", lambda one: one) is None
    assert not await registrations.deregister(stream, "app")


async def test_recreated_stream_does_not_inherit_consumers(engines, registrations, stream):
    await registrations.register(stream, "app", {}, 5)
    await engines.catalog.delete_stream(ORDERS)
    again, *_ = await engines.catalog.put_stream(ORDERS, StreamSpec())

    assert await registrations.find(again, "app") is None
    assert await registrations.count(again) == 0


async def test_consumers_are_deleted_with_stream(engines, registrations, stream):
    await registrations.register(stream, "app", {}, 5)
    await engines.catalog.delete_stream(ORDERS)
    await engines.catalog.delete_tombstoned([shard.log_id for shard in stream.shards])

    assert await registrations.count(stream) == 0


async def test_account_settings_are_independent(engines):
    await engines.namespaces.put("team", NO_QUOTAS)
    await engines.account_settings.put("team", "a", {"x": 1})
    await engines.account_settings.put("team", "b", 2)
    await engines.account_settings.put("team", "a", {"y": 3})

    assert await engines.account_settings.get("team") == {"a": {"y": 3}, "b": 2}
    assert await engines.account_settings.get("other") == {}


async def test_secret_is_created_once_and_persists(engines):
    assert engines.token_secret.cached is None
    secret = await engines.token_secret.get()

    assert len(secret) == 32
    assert engines.token_secret.cached == await engines.token_secret.get() == secret
