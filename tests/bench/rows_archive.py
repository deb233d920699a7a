"""Rows of the archive: archiving against pyarrow alone, and reads against the hot store.

Archiving is measured in processor time of the worker and its children, so that other work on the
machine and the number of cores do not matter; reads include the store's own part. Spark is started
beforehand.
"""

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import Any

import msgspec
import pyarrow.parquet as pq

from api.cli.up.programs import worker_program
from storage.bootstrap import open_storage
from storage.domain.names import StreamName
from storage.embedded.processes import child_setup, open_log
from tests.bench import payloads
from tests.bench.load import R_KEY, redis_benchmark, wrk
from tests.bench.plan import ARCHIVE, READ_TIERED, REPLAY, Plan
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, call, post_all

HOT, COLD = "bench-hot", "bench-cold"
HOT_RECORDS = 100_000
JOB_S_MAX = 600.0
KEYS = 500
TICKS = os.sysconf("SC_CLK_TCK")
_TRIM = 1_000_000


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Archive once, because a round is long; then read from the archive in rounds."""
    archive = Archive(house, plan)
    archive.fill(COLD, plan.archived)
    with running_worker(house) as worker:
        archived = archive.copy(worker)
        let_go(house, COLD, plan.archived)
        measured = [archived] if ARCHIVE in wanted else []
        if REPLAY in wanted:
            measured.append(archive.replay())
    if READ_TIERED in wanted:
        archive.fill(HOT, HOT_RECORDS)
        archive.begin_reading()
        contestant = Contestant(READ_TIERED, lambda: archive.read(COLD, plan.archived))
        measured += interleave(plan.rounds, lambda: archive.read(HOT, HOT_RECORDS), [contestant])
    call(house.api.port, "DELETE", f"/v1/streams/{COLD}")
    return measured


class Archive:
    """An archived stream, and one that is not archived."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan

    def fill(self, name: str, records: int) -> None:
        """Create a stream of incompressible records."""
        fill(self._house, name, records, archive=name == COLD)

    def copy(self, worker: "subprocess.Popen[bytes]") -> Measured:
        """Archive everything; records per second of one processor."""
        self._flush("bench-first", 500)  # starts Spark and loads its Python modules
        before = cpu_seconds(worker.pid)
        self._archive(COLD)
        value = self._plan.archived / (cpu_seconds(worker.pid) - before)
        return Measured(row=ARCHIVE, rounds=[Round(value, self._written_by_pyarrow())])

    def _flush(self, name: str, records: int) -> None:
        self.fill(name, records)
        call(self._house.api.port, "PATCH", f"/v1/streams/{name}", {"archive": True})
        self._archive(name)

    def _archive(self, name: str) -> None:
        archive_all(self._house.api.port, name)

    def _written_by_pyarrow(self) -> float:
        """Write the table of one file with pyarrow; records per second of one processor."""
        largest = max(Path(self._house.data, "archive").rglob("*.parquet"), key=_size)
        table = pq.ParquetFile(largest).read()
        begun = process_time()
        with pq.ParquetWriter(
            self._house.data / "reference.parquet",
            table.schema,
            compression="zstd",
            compression_level=3,
        ) as writer:
            writer.write_table(table)
        return float(table.num_rows / (process_time() - begun))

    def replay(self) -> Measured:
        """Replay archived records."""
        port = self._house.api.port
        call(port, "PUT", "/v1/streams/bench-again", {"shards": 4})
        request = {
            "stream": COLD,
            "target": {"stream": "bench-again"},
            "max_records": self._plan.replayed,
        }
        response, seconds = replay_all(port, request)
        self._house.settle_store()
        entries = self._plan.replayed * self._plan.seconds
        reference = redis_benchmark(self._house.valkey_socket, entries, payloads.BODY_BYTES)
        self._house.store.delete(R_KEY)
        return Measured(
            row=REPLAY, rounds=[Round(response["progress"]["sent"] / seconds, reference)]
        )

    def begin_reading(self) -> None:
        """Read once, so that the process loads its modules."""
        call(self._house.api.port, "GET", f"/v1/streams/{COLD}/shards/0/records?limit=1")

    def read(self, name: str, records: int) -> float:
        """Records per second from the first on; each call reads the next ones."""
        calls = records // payloads.RECORDS
        path = f"/v1/streams/{name}/shards/0/records?limit={payloads.RECORDS}&offset=%d"
        words = ("GET", JSON, MSGPACK, "-", path, str(calls), str(payloads.RECORDS))
        load = wrk(self._house.api.port, "fixed.lua", *words, seconds=self._plan.seconds)
        return load.rate * payloads.RECORDS


def fill(house: House, name: str, records: int, **spec: object) -> None:
    """Create a stream of incompressible records, which stay in the hot store until they are trimmed."""
    spec = {"hot_retention_seconds": 0, "hot_bytes_max": None} | spec
    call(house.api.port, "PUT", f"/v1/streams/{name}", spec)
    path = f"/v1/streams/{name}/columns"
    post_all(house.api.port, ((path, body, MSGPACK) for body in columns_of(records)))


def archive_all(port: int, name: str) -> float:
    """Archive all of a stream; return the job's own duration, in seconds."""
    job = call(port, "POST", f"/v1/archives/{name}/flushes")["job"]
    response = _done(port, f"/v1/jobs/{job}")
    if failures := response["progress"]["failures"]:
        raise Unmeasurable(f"not all is archived: {failures}")
    return _seconds(response)


def replay_all(port: int, request: dict[str, object]) -> tuple[Any, float]:
    """Run a replay; return its final state, and its own duration in seconds."""
    replay = call(port, "POST", "/v1/replays", request)["id"]
    response = _done(port, f"/v1/replays/{replay}")
    return response, _seconds(response)


def _done(port: int, path: str) -> Any:
    """Return the job or replay, once it is done."""
    give_up_at = monotonic() + JOB_S_MAX
    while True:
        response = call(port, "GET", path)
        if response["state"] == "done":
            return response
        if response["state"] == "failed" or monotonic() > give_up_at:
            raise Unmeasurable(f"it did not end: {response}")
        sleep(0.1)


def _seconds(ended: Any) -> float:
    return (_moment(ended["ended_at"]) - _moment(ended["started_at"])).total_seconds()


def let_go(house: House, name: str, records: int) -> None:
    """Trim archived records from the hot store."""
    asyncio.run(_let_go(house, StreamName(name), records))


async def _let_go(house: House, name: StreamName, records: int) -> None:
    async with open_storage(house.storage) as storage:
        while await storage.streams.trim(name, _TRIM):
            pass
        shards = (await storage.archive_admin.show(name)).shards
    if sum(shard.hot.start if shard.hot else 0 for shard in shards) < records:
        raise Unmeasurable("records stayed in the hot store")


def _moment(told: str) -> datetime:
    return datetime.fromisoformat(told)


def _size(path: Path) -> int:
    return path.stat().st_size


def columns_of(records: int) -> Iterator[bytes]:
    """Bodies of calls with this many records of 256 random hexadecimal digits."""
    calls = records // payloads.RECORDS
    chance, keys = random.Random(1), [f"key-{nth % KEYS}" for nth in range(payloads.RECORDS)]
    size = payloads.BODY_BYTES
    for _ in range(calls):
        digits = chance.randbytes(payloads.RECORDS * size // 2).hex().encode()
        data = [digits[start : start + size] for start in range(0, len(digits), size)]
        yield msgspec.msgpack.encode({"data": data, "keys": keys})


@contextmanager
def running_worker(house: House, **spark: object) -> "Generator[subprocess.Popen[bytes]]":
    """Run a worker with one task slot of Spark, or these settings, and end it."""
    settings = house.settings.model_copy(update={"spark_master": "local[1]"} | spark)
    program = worker_program(settings, house.data / "metrics")
    with open_log(house.data / "logs" / "worker.log") as output:
        process = subprocess.Popen(
            program.command,
            env=program.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGKILL),
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and all its children, including ended ones."""
    ticks = 0
    for one in (pid, *_below(pid)):
        try:
            words = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, words[11:15]))
    return ticks / TICKS


def _below(pid: int) -> Iterable[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            child = int(path.parent.name)
            yield child
            yield from _below(child)
