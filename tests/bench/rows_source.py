"""Rows of the Spark data source over HTTP, against pyarrow reading Parquet.

Measured in processor time of Spark (JVM and Python), so that the number of cores does not matter;
the service's part is only in the note, with the elapsed time.
"""

import asyncio
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, process_time

import pyarrow.parquet as pq

from spark_worker.runtime.spark_session import Session, open_session
from spark_worker.settings import WorkerSettings
from storage.bootstrap import open_storage
from storage.domain.names import StreamName
from tests.archive_steps import archive_stream
from tests.bench.plan import SOURCE_ARCHIVE, SOURCE_HOT, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_archive import columns_of, cpu_seconds
from tests.bench.servers import House
from tests.bench.wire import MSGPACK, call, post_all

HOT, COLD = "bench-source-hot", "bench-source-cold"
MEMORY_MB = 1024
_TRIM = 1_000_000


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Scan hot and archived records in rounds."""
    for name in (HOT, COLD):
        _fill(house, name, plan.scanned)
    others = archived_files(house)
    asyncio.run(_to_archive(house))
    files = archived_files(house) - others
    try:
        with spark_session(house) as session:
            scans = Scans(house, session, plan.scanned)
            contestants = [
                Contestant(SOURCE_HOT, lambda: scans.scan(HOT)),
                Contestant(SOURCE_ARCHIVE, lambda: scans.scan(COLD)),
            ]
            chosen = [one for one in contestants if one.row in wanted]
            scans.scan(HOT)  # starts Spark and loads its Python modules
            for one in chosen:
                one.notes = scans.notes_of(HOT if one.row is SOURCE_HOT else COLD)
            return interleave(plan.rounds, lambda: _read_by_pyarrow(files), chosen)
    finally:
        for name in (HOT, COLD):
            call(house.api.port, "DELETE", f"/v1/streams/{name}")


class Scans:
    """Read streams with Spark."""

    def __init__(self, house: House, session: Session, records: int) -> None:
        self._url = f"http://127.0.0.1:{house.api.port}"
        self._session = session
        self._records = records
        self._notes: dict[str, list[str]] = {HOT: [], COLD: []}

    def notes_of(self, name: str) -> list[str]:
        """Notes about the scans from now on."""
        self._notes[name] = []
        return self._notes[name]

    def scan(self, name: str) -> float:
        """Records per second of one processor."""
        frame = self._session.spark.read.format("millstream").options(url=self._url, stream=name)
        before, begun = cpu_seconds(self._session.jvm_pid), monotonic()
        frame.load().write.format("noop").mode("overwrite").save()
        wall = self._records / (monotonic() - begun)
        self._notes[name].append(f"with one core of Spark {wall:,.0f} records/s by the wall")
        return self._records / (cpu_seconds(self._session.jvm_pid) - before)


@contextmanager
def spark_session(house: House) -> Generator[Session]:
    """Open a session with one core."""
    settings = WorkerSettings(
        storage=house.storage, spark_master="local[1]", spark_memory_mb=MEMORY_MB
    )
    session = asyncio.run(open_session(settings))
    try:
        java = session.spark._jvm
        assert java is not None
        java.org.apache.spark.sql.classic.SparkSession.setActiveSession(
            session.spark._jsparkSession
        )
        yield session
    finally:
        session.close()


def _fill(house: House, name: str, records: int) -> None:
    spec = {"archive": name == COLD, "hot_retention_seconds": 0, "hot_bytes_max": None}
    call(house.api.port, "PUT", f"/v1/streams/{name}", spec)
    path = f"/v1/streams/{name}/columns"
    bodies = columns_of(records)
    post_all(house.api.port, ((path, body, MSGPACK) for body in bodies))


def archived_files(house: House) -> set[Path]:
    """Return the files of the archive."""
    return {*Path(house.data, "archive").rglob("*.parquet")}


async def _to_archive(house: House) -> None:
    name = StreamName(COLD)
    async with open_storage(house.storage) as storage:
        await archive_stream(storage, house.storage, name)
        while await storage.streams.trim(name, _TRIM):
            pass


def _read_by_pyarrow(files: Collection[Path]) -> float:
    """Read the archive's files; records per second of one processor."""
    begun, records = process_time(), 0
    for file in files:
        records += pq.ParquetFile(file).read(use_threads=False).num_rows
    return records / (process_time() - begun)
