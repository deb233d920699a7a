"""A stream of up to a thousand shards: cost per record, and memory per shard."""

import json
from collections.abc import Iterator

import msgspec

from tests.bench import payloads
from tests.bench.scale.caller import Caller, CallRequest, get, put
from tests.bench.scale.curves import Curve, Expected, Growing
from tests.bench.scale.maintenance import Round, idle_rounds, sweeper_curve
from tests.bench.scale.meters import MICRO, Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House
from tests.bench.wire import MSGPACK

KEYS = 100_000
_PER_SHARD = 20  # records per append to one shard


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """All curves over the number of shards."""
    spread = Spread(house, sizes)
    for size in sizes.shards:
        spread.measure(size)
    yield from spread.curves()


class Spread:
    """A stream for each size; each is deleted before the next."""

    def __init__(self, house: House, sizes: Sizes) -> None:
        self._house = house
        self._calls = sizes.calls // 4
        self._meter = Meter(house)
        self._records, self._reads, self._bytes = Growing(), Growing(), Growing()
        self._duties: list[tuple[int, dict[str, Round]]] = []

    def measure(self, size: int) -> None:
        """Append to, read and weigh a stream with this many shards."""
        path = f"/v1/streams/scale-{size}"
        self._house.wait_for_freeing()
        with Caller(self._house.api.port) as caller:
            caller.request([put("/v1/streams/scale-first", {"shards": 1})])
            before = self._house.used_memory()
            made = self._meter.spent(lambda: caller.request([put(path, {"shards": size})]))
            caller.request([_one_to_each(path, size)])
            each = (self._house.used_memory() - before) / size
            self._append(caller, path, size)
            self._read(caller, path, size, made.all_s)
            self._bytes.add(size, store=each)
            self._duties.append((size, idle_rounds(self._house, self._meter)))
            caller.request([CallRequest("DELETE", path)])

    def _append(self, caller: Caller, path: str, size: int) -> None:
        spread = [_spread(path, nth) for nth in range(self._calls)]
        one = [_to_one_shard(path, nth % size) for nth in range(self._calls)]
        spread_spent = self._meter.each(lambda: caller.done(spread) * payloads.RECORDS)
        one_spent = self._meter.each(lambda: caller.done(one) * payloads.RECORDS)
        self._records.add(
            size,
            keys_of_all_shards=spread_spent.all_s * MICRO,
            keys_of_all_shards_in_the_store=spread_spent.store_s * MICRO,
            one_shard_a_call=one_spent.all_s * MICRO,
        )

    def _read(self, caller: Caller, path: str, size: int, made_s: float) -> None:
        shards = [nth * size // self._calls for nth in range(self._calls)]
        reads = [get(f"{path}/shards/{shard}/records?limit=100") for shard in shards]
        read = self._meter.each(lambda: caller.done(reads))
        shown = self._meter.each(lambda: caller.done([get(path)] * 16))
        self._reads.add(
            size,
            read_a_shard=read.all_s * 1e3,
            show_the_stream=shown.all_s * 1e3,
            create_the_stream=made_s * 1e3,
        )

    def curves(self) -> Iterator[Curve]:
        """The results."""
        yield Curve(
            name="shards-append",
            title="Appending to many shards",
            size="shards",
            unit="µs of processor a record",
            made=f"{self._calls} calls of 500 records of 256 B over 8 connections, as columns in MessagePack. A call whose keys "
            "belong to all shards is a script for each shard that it meets, so up to 500 of them; one whose records go to "
            "one shard is one.",
            expected=Expected.PROPORTIONAL,
            series=self._records.series(),
            notes=[
                "With one record for each shard a record costs what an append costs; it grows no more after that."
            ],
            log_costs=True,
        )
        yield Curve(
            name="shards-reads",
            title="Reading one of many shards",
            size="shards",
            unit="ms of processor a call",
            made="A read of up to 100 records of one shard; the stream's definition, which lists all shards; its creation.",
            series=self._reads.series(),
            log_costs=True,
        )
        yield Curve(
            name="shards-memory",
            title="Memory of many shards",
            size="shards",
            unit="bytes a shard",
            made="What the store has allocated for each shard with one record of 256 B.",
            series=self._bytes.series(),
        )
        yield sweeper_curve("shards", self._duties)


def _spread(path: str, nth: int) -> CallRequest:
    first = nth * payloads.RECORDS % KEYS
    keys = [f"key-{first + number}" for number in range(payloads.RECORDS)]
    data = [payloads.BODY] * payloads.RECORDS
    body = msgspec.msgpack.encode({"data": data, "keys": keys})
    return CallRequest("POST", f"{path}/columns", body, MSGPACK, MSGPACK)


def _to_one_shard(path: str, shard: int) -> CallRequest:
    data = [{"data": payloads.BODY}] * payloads.RECORDS
    body = msgspec.msgpack.encode({"records": data})
    return CallRequest("POST", f"{path}/shards/{shard}/records", body, MSGPACK, MSGPACK)


def _one_to_each(path: str, size: int) -> CallRequest:
    width = 2**128 // size
    records = [
        {"data": payloads.BODY.decode(), "hash_key": str(width * nth)} for nth in range(size)
    ]
    return CallRequest("POST", f"{path}/records", json.dumps({"records": records}).encode())
