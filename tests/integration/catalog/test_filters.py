"""Queues and streams are filtered by a part of their name, and by tags."""

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
    return storage.search


async def test_name_part_matches_case_insensitively(listings):
    assert sorted(await listings.queue_names("default", "ORDER")) == ["Orders-old", "orders"]
    assert await listings.stream_names("default", "order") == ["order-events"]
    assert await listings.queue_names("elsewhere", "order") == []


async def test_pattern_characters_are_matched_literally(listings):
    assert await listings.queue_names("default", "_") == ["mail_out"]
    assert await listings.queue_names("default", "%") == []


async def test_all_requested_tags_must_match(listings):
    both = await listings.queue_names("default", "", {"team": "shop", "env": "prod"})

    assert both == ["orders"]
    assert await listings.queue_names("default", "", {"team": "nobody"}) == []


async def test_named_queues_are_returned_and_unknown_ones_left_out(listings):
    queues = await listings.queues("default", ["orders", "orders-gone", "nothing"])

    assert list(queues) == ["orders"]
    assert queues["orders"].spec.tags == {"team": "shop", "env": "prod"}
