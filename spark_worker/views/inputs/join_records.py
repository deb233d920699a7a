"""Parsed records of a join in Arrow: which are late, which are buffered, and their counts."""

import pyarrow as pa
import pyarrow.compute as pc

from spark_worker.views.executor import ShardStats
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import FollowedStream
from storage.domain.views.view import BadPolicy
from storage.parquet.record_schema import US_PER_MS


def stream_watermark_ms(plan: ViewPlan, watermark_ms: int | None) -> int | None:
    """Return the watermark of the streams of a join, behind which that of its rows is."""
    return None if watermark_ms is None else watermark_ms + plan.join_delay_ms


def least_times_ms(plan: ViewPlan, watermark_ms: int | None) -> dict[str, int | None]:
    """Return the event time of each stream from which on its records can match others.

    `watermark_ms`: that of the rows; None before the first record.
    """
    at_ms = stream_watermark_ms(plan, watermark_ms)
    return {
        name: None if at_ms is None else at_ms - wait_ms
        for name, wait_ms in plan.join_buffers_ms.items()
    }


def since(records: pa.Table, least_ms: int | None) -> pa.Table:
    """Return the parsed records with this event time or a later one."""
    return records if least_ms is None else records.filter(_is_since(records, least_ms))


def admitted(records: pa.Table, followed: FollowedStream, least_ms: int | None) -> pa.Table:
    """Return the records of a batch that others may match, less unreadable ones to skip."""
    if followed.input.on_bad is BadPolicy.SKIP:
        records = records.filter(pc.invert(records.column("_bad")))
    return since(records, least_ms)


def expired_records(
    plan: ViewPlan, watermark_ms: int | None, records: pa.Table
) -> tuple[pa.Table, int | None]:
    """Return the preserved records that have ceased to wait, and when the next one does.

    `watermark_ms`, and the one that is returned: that of the rows; None before the first record, and if none waits.
    """
    least_ms = least_times_ms(plan, watermark_ms)[plan.join_preserved]
    if least_ms is None or watermark_ms is None:
        return records.slice(0, 0), None
    waiting = _is_since(records, least_ms)
    first_us = pc.min(_times_us(records.filter(waiting))).as_py()
    expiry_ms = None if first_us is None else watermark_ms + first_us // US_PER_MS + 1 - least_ms
    return records.filter(pc.invert(waiting)), expiry_ms


def shard_stats(records: pa.Table, watermark_ms: int | None) -> dict[int, ShardStats]:
    """Count the parsed records of each shard of a batch, and those behind a watermark."""
    late = pa.repeat(False, records.num_rows)
    if watermark_ms is not None:
        late = pc.invert(_is_since(records, watermark_ms))
    counted = pa.table(
        {
            "shard": records.column("shard"),
            "late": pc.cast(late, pa.int64()),
            "bad": pc.cast(records.column("_bad"), pa.int64()),
            "time_us": _times_us(records),
        }
    ).group_by("shard")
    totals = counted.aggregate(
        [([], "count_all"), ("late", "sum"), ("bad", "sum"), ("time_us", "max")]
    )
    return {
        row["shard"]: ShardStats(
            row["count_all"], row["late_sum"], row["bad_sum"], row["time_us_max"] // US_PER_MS
        )
        for row in totals.to_pylist()
    }


def first_offsets(records: pa.Table, least_ms: int | None) -> dict[int, int]:
    """Return the first offset of each shard among the records since an event time."""
    totals = since(records, least_ms).group_by("shard").aggregate([("offset", "min")])
    return {row["shard"]: row["offset_min"] for row in totals.to_pylist()}


def _is_since(records: pa.Table, least_ms: int) -> pa.ChunkedArray:
    return pc.greater_equal(_times_us(records), least_ms * US_PER_MS)


def _times_us(records: pa.Table) -> pa.ChunkedArray:
    return pc.cast(records.column("event_time"), pa.int64())
