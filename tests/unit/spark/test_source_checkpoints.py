"""Checkpoints of streaming queries: which stream they belong to, and what was lost since."""

import logging

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_millstream import reader as reading
from pyspark_millstream.errors import DataLost, OptionError
from pyspark_millstream.options import read_options
from pyspark_millstream.ranges import Extents, ShardExtent, Span
from pyspark_millstream.reader import SpanPartition, StreamReader

OLD, NEW = "0123456789abcdef", "fedcba9876543210"


class Service:
    """A stream with one shard."""

    def __init__(self) -> None:
        self.stream_id, self.end, self.missing = OLD, 15, frozenset[int]()

    def extents(self) -> Extents:
        return Extents(self.stream_id, [ShardExtent(0, 0, self.end, True)], self.missing)


@pytest.fixture
def service(monkeypatch):
    service = Service()
    monkeypatch.setattr(reading, "Client", lambda options: service)
    return service


def reader(**options: str) -> StreamReader:
    given = {"url": "http://x", "stream": "clicks", "startingOffsets": "earliest", **options}
    return StreamReader(read_options(given))


def spans(query: StreamReader, start, end) -> list[Span]:
    partitions = query.partitions(start, end)
    return [partition.span for partition in partitions if isinstance(partition, SpanPartition)]


def test_checkpoint_names_its_stream(service):
    query = reader()

    start = query.initialOffset()
    end = query.latestOffset(start, ReadAllAvailable())

    assert (start, end) == ({"stream": OLD, "0": 0}, {"stream": OLD, "0": 15})
    assert spans(query, start, end) == [Span(0, 0, 15, OLD)]
    assert query.reportLatestOffset() == end


@pytest.mark.parametrize("end", [33, 7], ids=["more", "fewer"])
def test_checkpoint_of_deleted_stream_fails(service, end):
    """After 15 records the stream was recreated with 33; the query skipped the first 15."""
    service.stream_id, service.end = NEW, end

    with pytest.raises(DataLost, match="was deleted, and another stream has its name"):
        reader().latestOffset({"stream": OLD, "0": 15}, ReadAllAvailable())


@pytest.mark.parametrize("end", [33, 7], ids=["more", "fewer"])
def test_recreated_stream_is_read_whole_when_loss_is_allowed(service, end, caplog):
    service.stream_id, service.end = NEW, end
    query, start = reader(failOnDataLoss="false"), {"stream": OLD, "0": 15}

    with caplog.at_level(logging.WARNING):
        after = query.latestOffset(start, ReadAllAvailable())

    assert after == {"stream": NEW, "0": end}
    assert spans(query, start, after) == [Span(0, 0, end, NEW)]
    assert "was deleted" in caplog.text


def test_checkpoint_of_earlier_version_is_taken_once(service):
    service.end = 20
    query, start = reader(), {"0": 15}

    end = query.latestOffset(start, ReadAllAvailable())

    assert end == {"stream": OLD, "0": 20}
    assert spans(query, start, end) == [Span(0, 15, 20, OLD)]


@pytest.mark.parametrize("start", [{"stream": OLD, "0": 15}, {"0": 15}], ids=["with id", "without"])
def test_position_beyond_end_is_loss_and_not_end_of_stream(service, start, caplog):
    service.end = 7

    with pytest.raises(DataLost, match="ends at offset 7, before offset 15"):
        reader().latestOffset(start, ReadAllAvailable())
    query = reader(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        end = query.latestOffset(start, ReadAllAvailable())

    assert end == {"stream": OLD, "0": 7}
    assert spans(query, start, end) == []
    assert "ends at offset 7" in caplog.text


def test_available_now_ends_at_end_of_recreated_stream(service):
    query = reader(failOnDataLoss="false")
    query.prepareForTriggerAvailableNow()
    service.stream_id, service.end = NEW, 3

    assert query.latestOffset({"stream": OLD, "0": 15}, ReadAllAvailable())["0"] == 3


def test_query_of_missing_shard_is_rejected(service):
    service.missing = frozenset({9})

    with pytest.raises(OptionError, match="'shards': shard 9 does not exist"):
        reader(shards="9").initialOffset()
