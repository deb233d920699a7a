"""Batch writes of the Spark sink: complete, and exactly once."""

import time

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

OTHER_TASK_S = 60


def numbered(spark, count, partitions=4):
    """A data frame of numbered records."""
    return spark.range(0, count, 1, partitions).select(
        F.col("id").cast("string").alias("data"),
        F.concat(F.lit("k"), F.col("id") % 7).alias("key"),
    )


def writing(frame, target, **options):
    return frame.write.format("millstream").mode("append").options(**target.options, **options)


def test_data_frame_is_appended(spark, target, settings):
    writing(numbered(spark, 500), target).save()

    assert sorted(target.numbers()) == [*range(500)]
    assert target.staged(settings) == []


def test_record_is_built_from_columns(spark, target):
    frame = spark.sql(
        "select cast('x' as binary) data, 'k' key, timestamp '2026-01-31 12:00:00' event_ts,"
        " array(named_struct('k', 'colour', 't', '', 'v', cast('red' as binary))) headers"
    )

    writing(frame, target).save()

    [record] = target.records()
    assert (record["data"], record["key"], record["headers"]) == ("x", "k", {"colour": "red"})
    assert record["event_time"] == "2026-01-31T12:00:00.000Z"


def test_read_records_can_be_written_again(spark, stream, target):
    stream.put(range(40), headers={"colour": "red"})
    frame = spark.read.format("millstream").options(**stream.options).load()

    writing(frame.select("data", "key", "event_ts", "headers"), target).save()

    assert {key: sorted(some) for key, some in target.by_key().items()} == {
        key: sorted(some) for key, some in stream.by_key().items()
    }
    assert all(record["headers"] == {"colour": "red"} for record in target.records())


def test_named_write_is_idempotent(spark, target, settings):
    writing(numbered(spark, 60), target, writerId="load-7").save()
    writing(numbered(spark, 60, partitions=2), target, writerId="load-7").save()

    assert sorted(target.numbers()) == [*range(60)]
    assert target.staged(settings) == []


def test_failed_write_appends_nothing(spark, target, settings):
    staging, until = target.staging(settings), time.time() + OTHER_TASK_S

    def fail_late(batches):
        for batch in batches:
            if "99" in batch.column("data").to_pylist():
                while not any(staging.glob("*")) and time.time() < until:
                    time.sleep(0.05)
                time.sleep(0.5)  # the other task has staged its records and reported them
                raise ValueError("no more")
            yield batch

    frame = numbered(spark, 100, partitions=2).mapInArrow(fail_late, "data string, key string")

    with pytest.raises(PySparkException, match="no more"):
        writing(frame, target).save()

    assert target.records() == []
    assert target.staged(settings) == []


@pytest.mark.parametrize(
    ("columns", "mode", "said"),
    [
        ("id", "append", "column 'data' is required"),
        ("cast(id as string) data, id page", "append", "unknown column 'page'"),
        ("id data", "append", "column 'data' must be binary or a string, not bigint"),
        ("cast(id as string) data", "overwrite", "records can only be appended"),
        ("cast(null as string) data", "append", "can be empty but not null"),
    ],
)
def test_invalid_write_is_reported_in_one_line(spark, target, columns, mode, said):
    frame = spark.range(5).selectExpr(*columns.split(", "))

    with pytest.raises(PySparkException) as refused:
        frame.write.format("millstream").mode(mode).options(**target.options).save()

    assert any(said in line for line in str(refused.value).splitlines())
    assert target.records() == []
