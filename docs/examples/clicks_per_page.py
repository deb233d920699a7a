"""Count clicks per page in windows of five minutes, into a stream and a Postgres table.

python clicks_per_page.py http://127.0.0.1:8080 postgresql:///shop /var/lib/clicks-per-page
"""

import sys

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

TABLES = """
create table if not exists clicks_per_page (
    since timestamptz, page text, clicks bigint, primary key (since, page));
create table if not exists batches_done (query text primary key, batch_id bigint);
"""
TAKE_BATCH = """
insert into batches_done values (%s, %s) on conflict (query) do update
set batch_id = excluded.batch_id where batches_done.batch_id < excluded.batch_id
"""
UPSERT = """
insert into clicks_per_page values (%s, %s, %s)
on conflict (since, page) do update set clicks = excluded.clicks
"""


def clicks_per_page(spark: SparkSession, url: str) -> DataFrame:
    """Count the clicks of each page in each window. Clicks can be ten minutes late."""
    clicks = (
        spark.readStream.format("millstream")
        .option("url", url)
        .option("stream", "clicks")
        .option("startingOffsets", "earliest")
        .load()
    )
    return (
        clicks.select(
            F.coalesce("event_ts", "ts").alias("at"),
            F.get_json_object(F.col("data").cast("string"), "$.page").alias("page"),
        )
        .withWatermark("at", "10 minutes")
        .groupBy(F.window("at", "5 minutes"), "page")
        .agg(F.count("*").alias("clicks"))
        .select(F.col("window.start").alias("since"), "page", "clicks")
    )


def into_stream(counts: DataFrame, url: str, checkpoint: str, **trigger: bool) -> StreamingQuery:
    """Write each window once, when the watermark has passed it."""
    return (
        counts.select(F.to_json(F.struct("*")).alias("data"), F.col("page").alias("key"))
        .writeStream.format("millstream")
        .option("url", url)
        .option("stream", "clicks-per-page")
        .option("writerId", "clicks-per-page")
        .option("checkpointLocation", f"{checkpoint}/stream")
        .outputMode("append")
        .trigger(**trigger)
        .start()
    )


def into_postgres(counts: DataFrame, dsn: str, checkpoint: str, **trigger: bool) -> StreamingQuery:
    """Write the current counts. Spark may repeat a batch: the table takes each batch once."""

    def save(changed: DataFrame, batch_id: int) -> None:
        rows = [tuple(row) for row in changed.collect()]
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            if cursor.execute(TAKE_BATCH, ("clicks-per-page", batch_id)).rowcount:
                cursor.executemany(UPSERT, rows)

    with psycopg.connect(dsn) as connection:
        connection.execute(TABLES)
    return (
        counts.writeStream.foreachBatch(save)
        .option("checkpointLocation", f"{checkpoint}/postgres")
        .outputMode("update")
        .trigger(**trigger)
        .start()
    )


def main() -> None:
    url, dsn, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.appName("clicks-per-page").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    counts = clicks_per_page(spark, url)
    into_stream(counts, url, checkpoint)
    into_postgres(counts, dsn, checkpoint)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
