"""After a bug fix: a table made anew from all history, put in the old one's place at once, and kept up to date.

python rebuild_totals.py http://127.0.0.1:8080 postgresql:///shop
"""

import json
import sys
from collections.abc import Iterable

import psycopg
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

NEW = """
drop table if exists totals_new;
create table totals_new (customer text primary key, cents bigint not null);
"""
SWAP = """
create table if not exists totals (customer text primary key, cents bigint not null);
drop table totals;
alter table totals_new rename to totals;
create table if not exists totals_offsets (shard int primary key, next_offset bigint not null);
truncate totals_offsets;
"""


def payments(spark: SparkSession, url: str, **options: str) -> DataFrame:
    """The stream's records, from its oldest on, wherever they lie."""
    reader = spark.read.format("millstream").option("url", url).option("stream", "payments")
    return reader.options(**options).load()


def totals(records: DataFrame) -> DataFrame:
    """What each customer has paid. A refund counts as less: the old table had it as more."""
    told = F.from_json(F.col("data").cast("string"), "kind string, cents bigint")
    cents = F.when(told.kind == "refund", -told.cents).otherwise(told.cents)
    return records.groupBy(F.col("key").alias("customer")).agg(F.sum(cents).alias("cents"))


def rebuild(spark: SparkSession, url: str, dsn: str) -> dict[int, int]:
    """Make the table anew; gives the offset of each shard up to which it tells."""
    ends = {
        row.shard: row.next_offset
        for row in payments(spark, url)
        .groupBy("shard")
        .agg((F.max("offset") + 1).alias("next_offset"))
        .collect()
    }
    history = payments(spark, url, endingOffsets=json.dumps(ends)) if ends else payments(spark, url)

    def copy(rows: Iterable[Row]) -> None:
        with (
            psycopg.connect(dsn) as connection,
            connection.cursor() as cursor,
            cursor.copy("copy totals_new from stdin") as writing,
        ):
            for row in rows:
                writing.write_row(row)

    with psycopg.connect(dsn) as connection:
        connection.execute(NEW)
    totals(history).coalesce(1).foreachPartition(copy)
    with psycopg.connect(
        dsn
    ) as connection:  # one transaction: readers see the old table or the new one
        connection.execute(SWAP)
        connection.cursor().executemany(
            "insert into totals_offsets values (%s, %s)", [*ends.items()]
        )
    return ends


def main() -> None:
    url, dsn = sys.argv[1:]
    spark = SparkSession.builder.appName("rebuild-totals").getOrCreate()
    rebuild(spark, url, dsn)


if __name__ == "__main__":
    main()
