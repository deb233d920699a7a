"""A program that copies a stream with Structured Streaming, and kills itself on request.

python -m tests.chaos.copying_program URL FROM TO CHECKPOINT TASKS WHERE
WHERE is 'staged' (before the third commit), 'committed' (after it) or 'nowhere'.
"""

import asyncio
import os
import signal
import sys

from pyspark.sql import functions as F

from pyspark_millstream import DefaultSource
from pyspark_millstream.options import Options
from pyspark_millstream.writer import StreamWriter
from spark_worker.runtime.spark_session import open_session
from storage.settings import StorageSettings
from tests.spark.shared_session import worker_settings

FATAL_BATCH = 2
WHERE, DRIVER = "CHAOS_WHERE", "CHAOS_DRIVER"


class Mortal(StreamWriter):
    """Kill the driver before or after one commit."""

    def commit(self, messages, batchId):
        if batchId == FATAL_BATCH and os.environ[WHERE] == "staged":
            die()
        super().commit(messages, batchId)
        if batchId == FATAL_BATCH and os.environ[WHERE] == "committed":
            die()


def die() -> None:
    """Kill the program; the kernel then ends its JVM."""
    os.kill(int(os.environ[DRIVER]), signal.SIGKILL)
    signal.pause()


class MortalSource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return "mortal"

    def streamWriter(self, schema, overwrite):
        options: Options = self._write_options(schema, overwrite)
        return Mortal(options)


def main() -> None:
    url, source, target, checkpoint, tasks, where = sys.argv[1:]
    os.environ |= {WHERE: where, DRIVER: str(os.getpid())}
    unused = StorageSettings(redis_url="redis://127.0.0.1:1", database_url="postgresql:///none")
    session = asyncio.run(open_session(worker_settings(unused)))
    spark = session.spark
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    spark.dataSource.register(MortalSource)
    records = spark.readStream.format("millstream").options(
        url=url, stream=source, startingOffsets="earliest", maxRecordsPerTrigger="40"
    )
    query = (
        records.load()
        .select("data", "key")
        .repartition(int(tasks), F.rand())
        .writeStream.format("mortal")
        .options(url=url, stream=target, writerId="copier", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    session.close()


if __name__ == "__main__":
    from tests.chaos import copying_program

    copying_program.main()
