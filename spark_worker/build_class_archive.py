"""Program that writes the archive of the classes that Spark loads."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spark_worker.runtime.class_archive import FILE, dump_options
from spark_worker.runtime.java import Java, JavaMissing, find_java
from spark_worker.runtime.jvm import SparkFailed
from spark_worker.runtime.spark_session import open_session
from spark_worker.settings import WorkerSettings
from storage.settings import StorageSettings

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

_DUMP_S = 120.0
_NO_STORES = StorageSettings(redis_url="redis://none", database_url="postgresql://none/none")


def main() -> None:
    """Write the archive, or say why not: the worker starts without it too."""
    try:
        build()
    except (JavaMissing, SparkFailed, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"Spark starts without an archive of its classes: {error}\n")


def build() -> None:
    """Write the archive of this environment.

    Raises JavaMissing, SparkFailed, OSError, SubprocessError.
    """
    folder = FILE.with_suffix(".new")
    shutil.rmtree(folder, ignore_errors=True)  # of a build that was killed
    folder.mkdir(parents=True)
    new = folder / FILE.name
    try:
        _write_base_archive(find_java())
        asyncio.run(_dump(new, folder))
        if not new.exists():
            raise SparkFailed("The JVM wrote none.")
        new.replace(FILE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_base_archive(java: Java) -> None:
    """Write the archive of Java's own classes, which ours extends: a small JRE has none."""
    if not (java.home / "lib" / "server" / "classes.jsa").exists():
        command: list[str | Path] = [java.binary, "-Xshare:dump"]
        subprocess.run(command, capture_output=True, timeout=_DUMP_S, check=False)  # noqa: S603


async def _dump(new: Path, folder: Path) -> None:
    settings = WorkerSettings(
        storage=_NO_STORES, spark_master="local[1]", scratch=folder, log=folder / "log"
    )
    session = await open_session(settings, dump_options(new))
    try:
        await asyncio.to_thread(_run_sample, session.spark, str(folder / "sample"))
    finally:
        session.close(within_s=_DUMP_S)


def _run_sample(spark: "SparkSession", target: str) -> None:
    """Do what jobs and programs of users do: Python tasks, Parquet files, an aggregate."""
    rows = spark.createDataFrame([("a", 1), ("b", 2)], "key string, value long").repartition(2)
    copied = rows.mapInArrow(_copy, "key string, value long")
    copied.collect()
    copied.write.parquet(target)
    spark.read.parquet(target).where("value > 0").groupBy("key").count().orderBy("key").collect()


def _copy(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield from batches


if __name__ == "__main__":
    main()
