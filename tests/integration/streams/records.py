"""Records that the tests of reshards write and read."""

from collections import defaultdict

from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import RING_SIZE, Appended

CLICKS = StreamName("clicks")
WIDE = StreamName("wide")
HALF = RING_SIZE // 2
DAY_MS = 86_400_000
KEYS = [f"key {number}" for number in range(20)]


async def append(streams, name=CLICKS, data=b"x", idempotency_key=""):
    records = [Record(data, key) for key in KEYS]
    appended = await streams.append(name, records, idempotency_key=idempotency_key)
    assert all(isinstance(one, Appended) for one in appended), appended
    return appended


async def read_everything(reader, name) -> list[tuple[int, int, Record]]:
    """Read (shard, offset, record) of all records, in the order of a reader."""
    positions: dict[int, int] = {}
    found = []
    while True:
        read = await reader.read(name, positions, records_max=7)
        found += [
            (shard.shard, record.offset, record.record)
            for shard in read.shards
            for record in shard.records
        ]
        if read.positions == positions:
            return found
        positions = read.positions


def by_key(found) -> dict[str, list[bytes]]:
    order: dict[str, list[bytes]] = defaultdict(list)
    for _, _, record in found:
        order[record.key].append(record.data)
    return order
