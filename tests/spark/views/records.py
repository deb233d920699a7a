"""Seeded records of clicks, and their split into batches."""

import json
from random import Random

from storage.domain.log.record_batch import Record
from storage.domain.streams.stream import LogRecord

COLUMNS = "page string, ms bigint, price decimal(10,2), person string, at timestamp, ok boolean"
START_MS = 1_790_000_000_000


def clicks(random: Random, count: int) -> dict[int, list[LogRecord]]:
    """Return records of two shards, a few of which are not JSON."""
    shards: dict[int, list[LogRecord]] = {0: [], 1: []}
    for nth in range(count):
        records = shards[random.randrange(2)]
        time_ms = START_MS + random.randrange(3_600_000)
        record = Record(
            _data(random),
            key=random.choice(("", "ann", "bob", "cid")),
            headers=(("source", "", b"web"),),
            event_time_ms=random.choice((None, time_ms)),
        )
        records.append(LogRecord(len(records), START_MS + nth * 1000, record))
    return shards


def _data(random: Random) -> bytes:
    if random.random() < 0.05:
        return random.choice((b"{", b"\xff\xfe", b"[1]", b""))
    fields = {
        "page": random.choice(("/", "/cart", "/é\u0000", None)),
        "ms": random.choice((None, random.randrange(-5, 1000))),
        "price": random.randrange(10_000) / 100,
        "person": f"u{random.randrange(30)}",
        "at": f"2026-11-2{random.randrange(10)}T10:00:00Z",
        "ok": random.random() < 0.5,
    }
    return json.dumps(
        {name: value for name, value in fields.items() if random.random() < 0.9}
    ).encode()


def split(random: Random, shards: dict[int, list[LogRecord]]) -> list[dict[int, list[LogRecord]]]:
    """Cut the records of each shard into consecutive batches."""
    batches = [dict[int, list[LogRecord]]() for _ in range(random.randrange(1, 5))]
    for shard, records in shards.items():
        cuts = sorted(random.randrange(len(records) + 1) for _ in range(len(batches) - 1))
        for nth, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(records)], strict=True)):
            batches[nth][shard] = records[first:end]
    return batches
