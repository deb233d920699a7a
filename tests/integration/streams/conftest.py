"""A stream of one shard and one of four."""

import pytest

from storage.domain.streams.stream import StreamSpec
from tests.integration.streams.records import CLICKS, DAY_MS, WIDE


@pytest.fixture
async def streams(engines):
    await engines.catalog.put_stream(CLICKS, StreamSpec(retention_ms=DAY_MS))
    await engines.catalog.put_stream(WIDE, StreamSpec(shards=4))
    return engines.streams


@pytest.fixture
def reader(engines, streams):
    """Reader of the streams that tests write to."""
    return engines.record_reader
