"""Rebuild a table from all history after a bug fix, swap it in atomically, and keep it up to date.

python rebuild_totals.py http://127.0.0.1:8080 postgresql:///shop /var/lib/totals refunds-count-as-less
"""

import json
import sys
import time
from typing import Any

import httpx
import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

NEW = """
create table if not exists batches_done (query text primary key, batch_id bigint);
create table if not exists totals_new (customer text primary key, cents bigint not null);
"""
SWAP = "drop table if exists totals; alter table totals_new rename to totals"
TAKE_BATCH = """
insert into batches_done values (%s, %s) on conflict (query) do update
set batch_id = excluded.batch_id where batches_done.batch_id < excluded.batch_id
"""
ADD_TO = """
insert into {table} as known values (%s, %s)
on conflict (customer) do update set cents = known.cents + excluded.cents
"""


def totals(payments: DataFrame) -> DataFrame:
    """Sum the payments of each customer. A refund is subtracted: the old program added it."""
    payment = F.from_json(F.col("data").cast("string"), "kind string, cents bigint")
    cents = F.when(payment.kind == "refund", -payment.cents).otherwise(payment.cents)
    return payments.groupBy(F.col("key").alias("customer")).agg(F.sum(cents).alias("cents"))


def keep(
    spark: SparkSession,
    url: str,
    stream: str,
    table: str,
    dsn: str,
    checkpoint: str,
    starting: str = "earliest",
    **trigger: bool,
) -> StreamingQuery:
    """Add a stream's records to a table, each once: a batch that runs again is skipped."""

    def add(payments: DataFrame, batch_id: int) -> None:
        rows = [tuple(row) for row in totals(payments).collect()]
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            if cursor.execute(TAKE_BATCH, (checkpoint, batch_id)).rowcount:
                cursor.executemany(ADD_TO.format(table=table).encode(), rows)

    records = spark.readStream.format("millstream").option("url", url).option("stream", stream)
    return (
        records.option("startingOffsets", starting)
        .load()
        .writeStream.foreachBatch(add)
        .option("checkpointLocation", checkpoint)
        .trigger(**trigger)
        .start()
    )


def replay(url: str, name: str) -> dict[str, int]:
    """Replay all history to a separate stream; return the end offset of each shard.

    After a crash, call it again with the same name: it resumes the replay.
    """
    with httpx.Client(base_url=f"{url}/v1", timeout=60) as http:
        reply = http.get(f"/replays/{name}")
        if reply.status_code == 404:
            shards = _json(http.get("/streams/payments/shards"))["items"]
            ends = {str(shard["index"]): shard["next"] for shard in shards}
            _json(http.put(f"/streams/payments-{name}", json={}))
            request: dict[str, Any] = {"id": name, "stream": "payments", "to": {"offsets": ends}}
            request["target"] = {"stream": f"payments-{name}"}
            reply = http.post("/replays", json=request)
        while _json(reply)["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.5)
            reply = http.get(f"/replays/{name}")
        if reply.json()["state"] != "done":
            raise SystemExit(f"the replay has {reply.json()['state']}")
        offsets: dict[str, int] = _json(http.get(f"/replays/{name}"))["request"]["to"]["offsets"]
        return offsets


def _json(response: httpx.Response) -> Any:
    return response.raise_for_status().json()


def rebuild(
    spark: SparkSession, url: str, dsn: str, checkpoint: str, name: str, **trigger: bool
) -> StreamingQuery:
    """Rebuild the table by a replay, swap it in, and follow the live stream. Call it again after a crash."""
    ends = replay(url, name)
    with psycopg.connect(dsn) as connection:
        connection.execute(NEW)
    again = f"payments-{name}"
    keep(
        spark, url, again, "totals_new", dsn, f"{checkpoint}/{name}-again", availableNow=True
    ).awaitTermination()
    with psycopg.connect(dsn) as connection:  # in one transaction, and only the first time
        if connection.execute(TAKE_BATCH, (f"{name}-swap", 0)).rowcount:
            connection.execute(SWAP)
    live = f"{checkpoint}/{name}-live"
    return keep(spark, url, "payments", "totals", dsn, live, json.dumps(ends), **trigger)


def main() -> None:
    url, dsn, checkpoint, name = sys.argv[1:]
    spark = SparkSession.builder.appName("totals").getOrCreate()
    rebuild(spark, url, dsn, checkpoint, name).awaitTermination()


if __name__ == "__main__":
    main()
