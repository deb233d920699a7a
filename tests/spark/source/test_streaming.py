"""Structured Streaming reads of the Spark source."""

import os
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from pyspark.errors import StreamingQueryException

SOURCE_MODULE = b"pyspark.sql.streaming.python_streaming_source_runner"


class Seen:
    """Batches of a query, in order."""

    def __init__(self):
        self.batches = []

    def __call__(self, frame, batch_id):
        self.batches.append(
            [(row.shard, row.offset, row.key, int(row.data)) for row in frame.collect()]
        )

    @property
    def rows(self):
        return [row for batch in self.batches for row in batch]

    @property
    def numbers(self):
        return sorted(number for *_, number in self.rows)

    def by_key(self):
        """The numbers of each key, by batch and by offset within a batch."""
        found = defaultdict(list)
        for batch in self.batches:
            for _, _, key, number in sorted(batch):
                found[key].append(number)
        return dict(found)


def started(spark, stream, checkpoint, seen, *, available_now=True, **options):
    writer = (
        spark.readStream.format("millstream")
        .options(**stream.options, **options)
        .load()
        .writeStream.foreachBatch(seen)
        .option("checkpointLocation", checkpoint)
    )
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.start()


def run(spark, stream, checkpoint, **options):
    """Run a query to the end of the available records."""
    seen = Seen()
    query = started(spark, stream, checkpoint, seen, **options)
    query.awaitTermination()
    return seen


def test_runs_from_checkpoint_read_each_record_once(spark, stream, checkpoint, settings):
    stream.put(range(50))
    stream.archive_stream(settings)
    first = run(spark, stream, checkpoint, startingOffsets="earliest", maxRecordsPerTrigger="20")
    stream.put(range(50, 80))
    second = run(spark, stream, checkpoint, startingOffsets="earliest", maxRecordsPerTrigger="20")
    third = run(spark, stream, checkpoint, startingOffsets="earliest")

    assert first.numbers == [*range(50)]
    assert [len(batch) for batch in first.batches] == [20, 20, 10]
    assert second.numbers == [*range(50, 80)]
    assert third.rows == []


def test_query_starts_with_new_records_and_continues(spark, stream, checkpoint):
    stream.put(range(10))
    seen = Seen()
    query = started(spark, stream, checkpoint, seen, available_now=False)
    query.processAllAvailable()
    stream.put(range(10, 25))
    query.processAllAvailable()
    stream.put(range(25, 30))
    query.processAllAvailable()
    query.stop()

    assert seen.numbers == [*range(10, 30)]


def test_polls_of_query_share_one_connection(spark, stream, checkpoint):
    """A connection and a TLS context per poll took 40 ms of processor time."""
    seen = Seen()
    earliest = {"available_now": False, "startingOffsets": "earliest"}
    query = started(spark, stream, checkpoint, seen, **earliest)
    connections = set()
    for number in range(3):
        stream.put([number])
        query.processAllAvailable()
        connections |= {*source_connections(stream.url)}
    query.stop()

    assert seen.numbers == [0, 1, 2]
    assert len(connections) == 1


def source_connections(url):
    """Return the sockets of streaming sources that are connected to the service: process and inode."""
    remote = f":{httpx.URL(url).port:04X}"
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if SOURCE_MODULE in (folder / "cmdline").read_bytes():
                rows = [row.split() for row in (folder / "net/tcp").read_text().splitlines()]
                inodes = {row[9] for row in rows if row[2].endswith(remote)}
                names = {os.readlink(file) for file in (folder / "fd").iterdir()}
                yield from ((folder.name, one) for one in inodes if f"socket:[{one}]" in names)


def test_key_order_is_kept_across_splits_and_merges(spark, stream, checkpoint):
    seen = Seen()
    stream.put(range(100))
    query = started(
        spark,
        stream,
        checkpoint,
        seen,
        available_now=False,
        startingOffsets="earliest",
        maxRecordsPerTrigger="25",
    )
    while len(seen.rows) < 50:
        time.sleep(0.05)
        assert query.isActive
    stream.put(range(100, 150))
    stream.reshard(split={"shard": 0})
    stream.put(range(150, 250))
    children = [shard["index"] for shard in stream.shards if shard["parents"]]
    query.processAllAvailable()
    stream.reshard(merge=children)
    stream.put(range(250, 330))
    query.stop()
    rest = run(spark, stream, checkpoint, maxRecordsPerTrigger="25")

    seen.batches += rest.batches
    assert seen.numbers == [*range(330)]
    assert all(told == sorted(told) for told in seen.by_key().values())
    assert all(len(batch) <= 25 for batch in seen.batches)


def test_expired_records_end_query_unless_loss_is_allowed(spark, stream, checkpoint):
    stream.put(range(30))
    run(spark, stream, checkpoint, startingOffsets="earliest")
    stream.put(range(30, 60))
    (_, end) = stream.extents[0]
    stream.http.post(f"/v1/streams/{stream.name}/shards/0/truncate", json={"before": end - 1})

    with pytest.raises(StreamingQueryException, match="no longer has"):
        run(spark, stream, checkpoint)
    lenient = run(spark, stream, checkpoint, failOnDataLoss="false")

    of_first = [offset for shard, offset, *_ in lenient.rows if shard == 0]
    assert of_first == [end - 1]


@pytest.mark.parametrize("count", [33, 7], ids=["more", "fewer"])
def test_recreated_stream_ends_query_unless_loss_is_allowed(spark, stream, checkpoint, count):
    """The checkpoint's offsets were read on at in the new stream, and its first records skipped."""
    stream.put(range(15))
    run(spark, stream, checkpoint, startingOffsets="earliest")
    stream.http.delete(f"/v1/streams/{stream.name}").raise_for_status()
    stream.http.put(f"/v1/streams/{stream.name}", json={"shards": 2}).raise_for_status()
    stream.put(range(100, 100 + count))

    with pytest.raises(StreamingQueryException, match="another stream has its name"):
        run(spark, stream, checkpoint)
    lenient = run(spark, stream, checkpoint, failOnDataLoss="false")
    rest = run(spark, stream, checkpoint)

    assert lenient.numbers == [*range(100, 100 + count)]
    assert rest.rows == []


def test_query_starts_at_a_time(spark, stream, checkpoint):
    stream.put(range(10))
    time.sleep(0.005)
    since = str(round(time.time() * 1000))
    stream.put(range(10, 20))

    assert run(spark, stream, checkpoint, startingTime=since).numbers == [*range(10, 20)]
