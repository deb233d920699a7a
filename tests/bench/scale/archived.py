"""An archived stream of up to a hundred million small records: archiving, and reads."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen
from time import monotonic, perf_counter, sleep
from urllib.parse import quote

import msgspec

from storage.archive.admin import ShardArchive
from storage.bootstrap import open_storage
from storage.domain.clock import SystemClock
from storage.domain.names import StreamName
from tests.bench.ratios import Unmeasurable
from tests.bench.rows_archive import cpu_seconds, running_worker
from tests.bench.scale.caller import Caller, CallRequest, get, put
from tests.bench.scale.curves import Curve, Growing
from tests.bench.scale.meters import MICRO, Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, call

NAME = "scale-archived"
PATH = f"/v1/streams/{NAME}"
SHARDS = 4
RECORDS = 1_000  # per call
RECORD_BYTES = 16
LOT = 5_000_000  # at most this many are in the hot store
FLUSH_S_MAX = 1_800.0
READ = 500
_TRIM = 1_000_000


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of archived records."""
    with running_worker(house) as worker, Caller(house.api.port) as caller:
        caller.request([put(PATH, {"archive": True, "hot_bytes_max": None, "shards": SHARDS})])
        stream = Archived(house, caller, worker)
        stream.grow(SHARDS * RECORDS)  # starts Spark and loads its Python modules
        for size in sizes.archived:
            stream.measure(size)
    yield from stream.curves()


class Archived:
    """A growing stream, of which nothing stays in the hot store."""

    def __init__(self, house: House, caller: Caller, worker: "Popen[bytes]") -> None:
        self._house = house
        self._caller = caller
        self._worker = worker
        self._meter = Meter(house)
        self._count = 0
        self._began_ms = SystemClock().now_ms()
        self._costs, self._bytes, self._reads, self._firsts = (Growing() for _ in range(4))

    def measure(self, size: int) -> None:
        """Grow to this size, measure its cost, and read."""
        more, api_s, worker_s = size - self._count, 0.0, 0.0
        began = perf_counter()
        while self._count < size:
            before, worked = self._meter.read(), cpu_seconds(self._worker.pid)
            self.grow(min(LOT, size - self._count))
            worker_s += cpu_seconds(self._worker.pid) - worked
            api_s += self._meter.since(before).all_s
        took = perf_counter() - began
        self._costs.add(
            size,
            archiving=worker_s * MICRO / more,
            appending=api_s * MICRO / more,
            wall_time_of_both=took * MICRO / more,
        )
        self._bytes.add(size, Parquet=_bytes_below(self._house.data / "archive") / size)
        self._read(size)

    def grow(self, more: int) -> None:
        """Append, archive, and trim."""
        calls = max(1, more // RECORDS)
        self._caller.request(_appends(self._count // RECORDS, calls))
        self._count += calls * RECORDS
        asyncio.run(self._put_away())

    async def _put_away(self) -> None:
        async with open_storage(self._house.storage) as storage:
            name, give_up_at = StreamName(NAME), monotonic() + FLUSH_S_MAX
            while True:
                shown = await storage.archive_admin.show(name)
                if not any(_is_behind(shard) for shard in shown.shards):
                    break
                if monotonic() > give_up_at:
                    raise Unmeasurable("not everything is archived")
                await asyncio.to_thread(self._flush)
            while await storage.streams.trim(name, _TRIM):
                pass

    def _flush(self) -> None:
        job = call(self._house.api.port, "POST", f"/v1/archives/{NAME}/flushes")["job"]
        while (response := call(self._house.api.port, "GET", f"/v1/jobs/{job}"))["state"] != "done":
            if response["state"] == "failed":
                raise Unmeasurable(f"archiving failed: {response}")
            sleep(0.1)

    def _read(self, size: int) -> None:
        """Read at the start, middle and end of a shard, and the first record from a time on."""
        of_shard = size // SHARDS
        places = {"beginning": 0, "middle": of_shard // 2, "end": of_shard * 9 // 10}
        spans = {
            label: self._meter.each(
                lambda first=first: self._caller.done(  # type: ignore[misc]
                    [_read_at(first + nth * READ % max(READ, of_shard // 20)) for nth in range(40)]
                )
            )
            for label, first in places.items()
        }
        self._reads.add(size, **{label: spent.all_s * 1e3 for label, spent in spans.items()})
        self._firsts.add(size, at_a_time=self._first(size), at_an_offset=self._first_offset(size))

    def _first(self, size: int) -> float:
        """The median of reads of one record from different times, in ms."""
        now = SystemClock().now_ms()
        moments = [self._began_ms + (now - self._began_ms) * nth // 20 for nth in range(20)]
        words = [
            datetime.fromtimestamp(ms / 1e3, UTC).isoformat(timespec="milliseconds")
            for ms in moments
        ]
        return self._median(
            [get(f"{PATH}/shards/0/records?limit=1&time={quote(at)}") for at in words]
        )

    def _first_offset(self, size: int) -> float:
        places = [size // SHARDS * nth // 20 for nth in range(20)]
        return self._median([get(f"{PATH}/shards/0/records?limit=1&offset={at}") for at in places])

    def _median(self, asked: list[CallRequest]) -> float:
        times = []
        for request in asked:
            began = perf_counter()
            self._caller.request([request])
            times.append(perf_counter() - began)
        return sorted(times)[len(times) // 2] * 1e3

    def curves(self) -> Iterator[Curve]:
        """The results."""
        yield Curve(
            name="archived-costs",
            title="Archiving",
            size="records",
            unit="µs a record",
            made=f"Records of {RECORD_BYTES} B with a key, {RECORDS} in a call, over {SHARDS} shards, archived in lots of at most "
            f"{LOT:,} by a Spark worker with one core. Processor time of the worker, its JVM and its Python; of API, store "
            "and Postgres together; and the time both took one after the other.",
            series=self._costs.series(),
        )
        yield Curve(
            name="archived-bytes",
            title="Size of the archive",
            size="records",
            unit="bytes a record",
            made="All files of the archive.",
            series=self._bytes.series(),
        )
        yield Curve(
            name="archived-reads",
            title="Reading the archive",
            size="records",
            unit="ms of processor a call",
            made=f"40 calls of {READ} records in MessagePack over 8 connections, from the beginning, the middle and the end of a "
            "shard; the median of three rounds.",
            series=self._reads.series(),
        )
        yield Curve(
            name="archived-first",
            title="The first record of a read",
            size="records",
            unit="ms, median of 20",
            made="A read of one record from a moment, and from an offset, each in another place of the shard, one after another.",
            series=self._firsts.series(),
        )


def _is_behind(shard: ShardArchive) -> bool:
    """Return whether it has records that are not archived."""
    archived = 0 if shard.state is None else shard.state.archived
    return shard.hot is not None and archived < shard.hot.next


def _appends(first: int, calls: int) -> Iterator[CallRequest]:
    keys = [f"key-{nth}" for nth in range(RECORDS)]
    for nth in range(first, first + calls):
        data = [b"%0*d" % (RECORD_BYTES, nth * RECORDS + number) for number in range(RECORDS)]
        body = msgspec.msgpack.encode({"data": data, "keys": keys})
        yield CallRequest("POST", f"{PATH}/columns", body, MSGPACK, MSGPACK)


def _read_at(offset: int) -> CallRequest:
    path = f"{PATH}/shards/0/records?limit={READ}&offset={offset}"
    return CallRequest("GET", path, b"", JSON, MSGPACK)


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))
