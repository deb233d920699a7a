"""Queues and streams are found by a part of their name, and by tags."""

import pytest

from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec

pytestmark = pytest.mark.one_store


@pytest.fixture
async def listings(storage):
    specs = {
        "orders": {"team": "shop", "env": "prod"},
        "Orders-old": {"team": "shop"},
        "mail_out": {"team": "crm"},
    }
    for name, tags in specs.items():
        await storage.catalog.put_queue(QueueName(name), QueueSpec(tags=tags))
    await storage.catalog.put_stream(StreamName("order-events"), StreamSpec(shards=1))
    await storage.catalog.put_queue(QueueName("orders-gone"), QueueSpec())
    await storage.catalog.delete_queue(QueueName("orders-gone"))
    return storage.listings


async def test_a_part_of_a_name_is_looked_for_whatever_its_case(listings):
    assert sorted(await listings.queue_names("default", "ORDER")) == ["Orders-old", "orders"]
    assert await listings.stream_names("default", "order") == ["order-events"]
    assert await listings.queue_names("elsewhere", "order") == []


async def test_what_is_special_in_a_pattern_is_not_in_a_name(listings):
    assert await listings.queue_names("default", "_") == ["mail_out"]
    assert await listings.queue_names("default", "%") == []


async def test_all_tags_that_are_asked_for_are_borne(listings):
    both = await listings.queue_names("default", "", {"team": "shop", "env": "prod"})

    assert both == ["orders"]
    assert await listings.queue_names("default", "", {"team": "nobody"}) == []


async def test_named_queues_are_given_and_the_others_left_out(listings):
    found = await listings.queues("default", ["orders", "orders-gone", "nothing"])

    assert list(found) == ["orders"]
    assert found["orders"].spec.tags == {"team": "shop", "env": "prod"}
