"""Batch reads of the Spark source."""

import json
import time
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from pyspark_millstream import DefaultSource
from pyspark_millstream.schema import RECORD

PUSHED = "spark.sql.python.filterPushdown.enabled"


def read(spark, stream, **options):
    return spark.read.format("millstream").options(**stream.options, **options).load()


def places(frame):
    return sorted((row.shard, row.offset) for row in frame.select("shard", "offset").collect())


def numbers(frame):
    return sorted(int(row.data) for row in frame.select("data").collect())


def moment():
    """A time in whole milliseconds between earlier and later arrivals."""
    time.sleep(0.005)
    now = datetime.now(UTC)
    time.sleep(0.005)
    return now


def test_stream_is_read_as_data_frame(spark, stream):
    stream.put(range(20), headers={"colour": "red"}, event_time="2026-01-31T12:00:00.000Z")
    stream.http.post(f"/v1/streams/{stream.name}/records", content=b"\x00\xff").raise_for_status()

    frame = read(spark, stream)
    rows = frame.orderBy("shard", "offset").collect()

    assert frame.schema == RECORD
    records = sorted(stream.records(), key=lambda record: (record["shard"], record["offset"]))
    assert [(row.shard, row.offset) for row in rows] == [
        (record["shard"], record["offset"]) for record in records
    ]
    assert [row.key for row in rows] == [record.get("key") for record in records]
    assert [_spelled(row.ts) for row in rows] == [record["arrival_time"] for record in records]
    first = next(row for row in rows if row.data == b"0")
    assert first.event_ts == datetime.fromisoformat("2026-01-31T12:00:00")
    assert [header.asDict() for header in first.headers] == [{"k": "colour", "t": "", "v": b"red"}]
    last = next(row for row in rows if row.key is None)
    assert (last.data, last.event_ts, last.headers) == (b"\x00\xff", None, None)


def _spelled(moment):
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def test_hot_and_archived_records_are_read_in_partitions(spark, stream, settings):
    stream.put(range(100))
    stream.archive_stream(settings)
    stream.put(range(100, 150))

    frame = read(spark, stream, recordsPerPartition="20")

    assert numbers(frame) == [*range(150)]
    sizes = [next_ - start for start, next_ in stream.extents.values()]
    assert frame.rdd.getNumPartitions() == sum(-(-size // 20) for size in sizes)


def test_stream_view_of_queue_is_read(spark, http, url):
    http.put("/v1/queues/viewed", json={"stream_view": True}).raise_for_status()
    for number in range(3):
        http.post("/v1/queues/viewed/messages", json={"body": str(number)}).raise_for_status()

    frame = spark.read.format("millstream").options(url=url, stream="viewed").load()

    assert numbers(frame) == [0, 1, 2]


def test_batch_reads_between_offsets_and_from_given_shards(spark, stream):
    stream.put(range(60))
    (_, end0), (_, end1) = (stream.extents[one] for one in (0, 1))

    part = read(
        spark, stream, startingOffsets='{"0": 5}', endingOffsets=json.dumps({"0": 9, "1": 4})
    )
    one = read(spark, stream, shards="1", startingOffsets="earliest")
    none = read(spark, stream, startingOffsets="latest")

    assert places(part) == [*((0, nth) for nth in range(5, 9)), *((1, nth) for nth in range(4))]
    assert places(one) == [(1, nth) for nth in range(end1)]
    assert places(none) == []
    assert end0 + end1 == 60


def test_batch_reads_between_times(spark, stream, settings):
    stream.put(range(10))
    stream.archive_stream(settings)
    between = moment()
    stream.put(range(10, 20))
    after = moment()
    stream.put(range(20, 30))

    late = read(spark, stream, startingTime=after.isoformat())
    middle = read(
        spark,
        stream,
        startingTime=between.isoformat(),
        endingTime=str(round(after.timestamp() * 1000)),
    )

    assert numbers(late) == [*range(20, 30)]
    assert numbers(middle) == [*range(10, 20)]


def test_filters_are_pushed_down_when_enabled(spark, stream):
    stream.put(range(60))
    since = moment()
    stream.put(range(60, 90))
    (_, end) = stream.extents[1]
    frame = read(spark, stream, pushFilters="true")
    spark.conf.set(PUSHED, "true")
    try:
        some = frame.where("shard = 1 and offset >= 3 and offset < 9")
        listed = frame.where("shard in (0, 7) and offset in (2, 4)")
        late = frame.where(F.col("ts") >= F.lit(since))
        partitions = [one.rdd.getNumPartitions() for one in (some, listed, late)]

        assert places(some) == [(1, nth) for nth in range(3, 9)]
        assert places(listed) == [(0, 2), (0, 4)]
        assert numbers(late) == [*range(60, 90)]
        assert partitions == [1, 1, 2]
        assert places(frame.where(F.col("offset") == end - 1).where("shard = 1")) == [(1, end - 1)]
        assert frame.where("shard = 5").rdd.getNumPartitions() <= 1
    finally:
        spark.conf.unset(PUSHED)


def test_spark_filters_when_pushdown_is_disabled(spark, stream):
    stream.put(range(60))

    assert places(read(spark, stream).where("shard = 1 and offset < 3")) == [(1, 0), (1, 1), (1, 2)]


def test_expired_records_fail_batch_unless_loss_is_allowed(spark, stream):
    stream.put(range(40))
    stream.http.post(f"/v1/streams/{stream.name}/shards/0/truncate", json={"before": 4})
    ends = {shard: end for shard, (_, end) in stream.extents.items()}

    strict = read(spark, stream, startingOffsets='{"0": 2}')
    lenient = read(spark, stream, startingOffsets='{"0": 2}', failOnDataLoss="false")

    with pytest.raises(PySparkException, match="no longer has the records from 2 to 3"):
        strict.collect()
    assert places(lenient.where("shard = 0")) == [(0, nth) for nth in range(4, ends[0])]
    assert places(read(spark, stream).where("shard = 0")) == places(lenient.where("shard = 0"))


def test_source_can_be_registered_under_another_name(spark, stream):
    class Mine(DefaultSource):
        @classmethod
        def name(cls):
            return "mine"

    stream.put(range(5))

    spark.dataSource.register(Mine)

    frame = spark.read.format("mine").options(**stream.options).load()
    assert numbers(frame) == [*range(5)]


def test_plan_does_not_show_the_key(spark, stream, capfd):
    stream.put(range(5))

    frame = read(spark, stream, apiKey="k-very-secret").where("offset > 1")
    frame.explain(True)
    frame.explain("formatted")

    assert numbers(frame.select("data")) is not None
    told = capfd.readouterr().out
    assert "millstream" in told
    assert "k-very-secret" not in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "earliest"}, "unknown option 'startingoffset'"),
        ({"stream": "nowhere-to-be-found"}, "Stream 'nowhere-to-be-found' does not exist"),
        ({"startingOffsets": '{"9": 1}'}, "shard 9 does not exist"),
        ({"endingOffsets": '{"0": 100}'}, "shard 0 ends at offset"),
        ({"shards": "9"}, "'shards': shard 9 does not exist"),
    ],
)
def test_invalid_read_is_reported_in_one_line(spark, stream, options, said):
    with pytest.raises(PySparkException) as refused:
        spark.read.format("millstream").options(**stream.options).options(
            **options
        ).load().collect()

    [line] = [line for line in str(refused.value).splitlines() if said in line]
    assert line.startswith("pyspark_millstream.errors.")
