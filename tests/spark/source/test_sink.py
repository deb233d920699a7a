"""The streaming sink: each micro-batch is written exactly once."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as F


def copy(spark, stream, target, checkpoint, *, parts=2, **options):
    """Run a query that copies a stream, shuffled into the given number of tasks."""
    frame = (
        spark.readStream.format("millstream")
        .options(**stream.options, startingOffsets="earliest", maxRecordsPerTrigger="30")
        .load()
        .select("data", "key")
        .repartition(parts, F.rand())
    )
    query = (
        frame.writeStream.format("millstream")
        .options(**target.options, writerId="copier", **options)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def forget_last_commit(checkpoint):
    """Remove the last commit, as if the driver was killed before it was written."""
    commits = Path(checkpoint, "commits")
    last = max(int(one.name) for one in commits.iterdir() if one.name.isdecimal())
    for one in (commits / str(last), commits / f".{last}.crc"):
        one.unlink(missing_ok=True)
    return last


def test_stream_is_copied_batch_by_batch(spark, stream, target, checkpoint):
    stream.put(range(70))
    copy(spark, stream, target, checkpoint)
    stream.put(range(70, 100))
    copy(spark, stream, target, checkpoint)

    assert sorted(target.numbers()) == [*range(100)]


def test_repeated_batch_with_other_shuffle_adds_nothing(
    spark, stream, target, checkpoint, settings
):
    stream.put(range(100))
    copy(spark, stream, target, checkpoint, parts=2)
    before = target.records()
    for parts in (5, 1):
        forget_last_commit(checkpoint)
        copy(spark, stream, target, checkpoint, parts=parts)

    assert target.records() == before
    assert sorted(target.numbers()) == [*range(100)]
    assert target.staged(settings) == []


def test_failed_batch_is_written_completely_by_next_run(spark, stream, target, checkpoint):
    stream.put(range(50))
    stream.put([-1])
    frame = (
        spark.readStream.format("millstream")
        .options(**stream.options, startingOffsets="earliest")
        .load()
        .select(
            F.when(F.col("key") == "k6", F.raise_error(F.lit("no")))
            .otherwise(F.col("data").cast("string"))
            .alias("data")
        )
    )
    query = (
        frame.writeStream.format("millstream")
        .options(**target.options, writerId="failing")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    assert target.records() == []

    copy(spark, stream, target, checkpoint)

    assert sorted(target.numbers()) == [-1, *range(50)]


def test_sink_requires_writer_id(spark, stream, target, checkpoint):
    frame = spark.readStream.format("millstream").options(**stream.options).load().select("data")

    with pytest.raises(PySparkException, match="writerId"):
        frame.writeStream.format("millstream").options(**target.options).option(
            "checkpointLocation", checkpoint
        ).trigger(availableNow=True).start().awaitTermination()
