"""Columnar appends."""

import asyncio

import pytest

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import (
    BacklogFull,
    BatchTooLarge,
    MessageTooLarge,
    ShardClosed,
    StorageBusy,
    StorageUnavailable,
    StreamReadOnly,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record, decode_batch, encode_batch
from storage.domain.names import StreamName
from storage.domain.streams.columnar_batch import Columns, encode_columns
from storage.domain.streams.stream import RING_SIZE, AppendedRange, EventTimes, Stream, StreamSpec
from tests.queue_operations import WORK, create_queue

CLICKS = StreamName("clicks")


async def stream(engines: Storage, shards: int = 1, **spec: object) -> None:
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=shards, **spec))  # type: ignore[arg-type]


def columns(count: int, first: int = 0) -> Columns:
    numbers = range(first, first + count)
    return Columns([b"%d" % number for number in numbers], [f"key-{n % 40}" for n in numbers])


async def everything(engines: Storage) -> dict[tuple[int, int], Record]:
    """Read all records as (shard, offset) -> record."""
    records: dict[tuple[int, int], Record] = {}
    positions: dict[int, int] = {}
    while True:
        read = await engines.record_reader.read(CLICKS, positions)
        if not any(shard.records for shard in read.shards):
            return records
        for shard in read.shards:
            records |= {(shard.shard, at.offset): at.record for at in shard.records}
        positions = dict(read.positions)


def hold(stale: Stream, engines: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process find an old definition, whatever notifications arrive."""

    async def stale_stream(*_: object, **__: object) -> Stream:
        return stale

    monkeypatch.setattr(engines.streams._appender, "stream", stale_stream)


def placed(sent: Columns, ranges: list[AppendedRange]) -> dict[tuple[int, int], Record]:
    records = sent.records()
    return {
        (each_range.shard, each_range.offset + nth): records[number]
        for each_range in ranges
        for nth, number in enumerate(each_range.numbers)
    }


@pytest.mark.parametrize("shards", [1, 4])
async def test_columns_are_stored_at_returned_ranges(engines, shards):
    await stream(engines, shards)
    sent = columns(200)

    ranges = await engines.streams.append_columns(CLICKS, sent)

    assert await everything(engines) == placed(sent, ranges)
    assert sorted(number for each_range in ranges for number in each_range.numbers) == [*range(200)]
    assert len(ranges) == shards


async def test_columns_and_records_of_one_key_share_shard_in_order(engines):
    await stream(engines, 4)

    await engines.streams.append(CLICKS, [Record(b"1", "a")])
    await engines.streams.append_columns(CLICKS, Columns([b"2", b"3"], ["a", "b"]))
    await engines.streams.append(CLICKS, [Record(b"4", "a")])

    records = await everything(engines)
    assert [record.data for record in records.values() if record.key == "a"] == [b"1", b"2", b"4"]


async def test_columns_and_records_of_one_flush_share_batch(engines):
    await stream(engines)
    sent = [columns(3, first) for first in (0, 10, 20)]

    await asyncio.gather(
        *(engines.streams.append_columns(CLICKS, some) for some in sent),
        engines.streams.append(CLICKS, [Record(b"r", "k", (("h", "", b"v"),))]),
    )

    records = await everything(engines)
    assert len(records) == 10
    assert Record(b"r", "k", (("h", "", b"v"),)) in records.values()
    assert set(map(repr, records.values())) >= {
        repr(record) for some in sent for record in some.records()
    }


async def test_records_without_key_stay_together(engines):
    await stream(engines, 8)

    [none] = await engines.streams.append_columns(CLICKS, Columns([b"1", b"2", b"3"]))
    some = await engines.streams.append_columns(CLICKS, Columns([b"1", b"2", b"3"], ["", "k", ""]))

    assert len(none.numbers) == 3
    together = [[*one.numbers] for one in some]
    assert any({0, 2} <= set(numbers) for numbers in together)


async def test_repeat_with_same_idempotency_key_adds_nothing(engines):
    await stream(engines, 4)
    sent = columns(50)
    first = await engines.streams.append_columns(CLICKS, sent, idempotency_key="k")

    again = await engines.streams.append_columns(CLICKS, sent, idempotency_key="k")
    as_records = await engines.streams.append(CLICKS, sent.records(), idempotency_key="k")

    assert all(one.duplicate for one in again)
    assert placed(sent, again) == placed(sent, first)
    assert all(not isinstance(one, Exception) and one.duplicate for one in as_records)
    assert len(await everything(engines)) == 50


async def test_columns_with_stale_definition_reach_children_of_split(engines, monkeypatch):
    """This process has a stale definition."""
    await stream(engines, 2)
    before = await engines.streams.append_columns(CLICKS, columns(40))
    stale = await engines.catalog.stream(CLICKS)
    await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 4)
    sent = columns(200, 40)
    hold(stale, engines, monkeypatch)

    ranges = await engines.streams.append_columns(CLICKS, sent)

    records = await everything(engines)
    assert records == placed(columns(40), before) | placed(sent, ranges)
    assert {each_range.shard for each_range in ranges} == {1, 2, 3}


@pytest.mark.parametrize("error", [StorageUnavailable(), BacklogFull(), StorageBusy()])
async def test_failed_redirection_does_not_affect_other_shards(engines, monkeypatch, error):
    """A call of which one shard took records was answered as if nothing had happened."""
    await stream(engines, 2)
    stale = await engines.catalog.stream(CLICKS)
    await engines.streams.resharder.split(CLICKS, 0, RING_SIZE // 4)
    definitions: list[Stream] = [stale]

    async def fail_later(*_: object, **__: object) -> Stream:
        if definitions:
            return definitions.pop()
        raise error

    monkeypatch.setattr(engines.streams._appender, "stream", fail_later)
    sent = columns(40)

    ranges = await engines.streams.append_columns(CLICKS, sent)

    stored = [each_range for each_range in ranges if each_range.error is None]
    assert {each_range.shard for each_range in stored} == {1}
    assert await everything(engines) == placed(sent, stored)
    assert [each_range.error for each_range in ranges if each_range.error is not None] == [error]
    assert sorted(n for each_range in ranges for n in each_range.numbers) == list(range(40))


async def test_columns_with_stale_definition_reach_recreated_stream(engines, monkeypatch):
    """The batch was divided for the shards of the deleted stream."""
    await stream(engines, 2)
    await engines.streams.append_columns(CLICKS, columns(40))
    hold(await engines.catalog.stream(CLICKS), engines, monkeypatch)
    await engines.catalog.delete_stream(CLICKS)
    await stream(engines, 3)
    sent = columns(200)

    ranges = await engines.streams.append_columns(CLICKS, sent)

    assert await everything(engines) == placed(sent, ranges)
    assert {each_range.shard for each_range in ranges} == {0, 1, 2}


async def test_one_failing_shard_does_not_affect_others(engines):
    await stream(engines, 2)
    await engines.streams.set_fence(CLICKS, 0, "mine")

    ranges = await engines.streams.append_columns(CLICKS, columns(40))

    refused = [each_range for each_range in ranges if each_range.error is not None]
    assert [each_range.shard for each_range in ranges if each_range.error is None] == [1]
    assert len(refused) == 1
    assert not isinstance(refused[0].error, ShardClosed)


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (Columns([]), ValidationFailed),
        (Columns([b"1", b"2"], ["a"]), ValidationFailed),
        (Columns([b"1"], ["k" * 257]), ValidationFailed),
        (Columns([b"x"] * 1_001), BatchTooLarge),
        (Columns([b"1", b"x" * 101]), MessageTooLarge),
        (Columns([b"x" * 99], ["é"]), MessageTooLarge),
    ],
)
async def test_invalid_columns_are_rejected_whole(engines, sent, refusal):
    await stream(engines, record_bytes_max=100)

    with pytest.raises(refusal):
        await engines.streams.append_columns(CLICKS, sent)

    assert await everything(engines) == {}


async def test_stream_that_requires_event_times_rejects_columns(engines):
    await stream(engines, event_times=EventTimes.CLIENT_REQUIRE)

    with pytest.raises(ValidationFailed):
        await engines.streams.append_columns(CLICKS, columns(1))


async def test_stream_view_rejects_columns(engines):
    await create_queue(engines, WORK, stream_view=True)

    with pytest.raises(StreamReadOnly):
        await engines.streams.append_columns(StreamName("work"), columns(1))


def test_columns_are_encoded_like_their_records():
    parts = [columns(3), Columns([b"bare"]), columns(20, 7), Columns([b"", b"2"], ["", "ä"])]
    packed = [part.packed() for part in parts]

    encoded = encode_columns(packed)

    records = [record for part in parts for record in part.records()]
    assert encoded == encode_batch(records)
    assert decode_batch(encoded) == records
    assert [part.records() for part in packed] == [part.records() for part in parts]


def test_columns_with_headers_and_times_are_encoded_like_their_records():
    header = ("h", "", b"1")
    parts = [
        Columns([b"1", b"2"], (), [(header,), ()], [None, 7]),
        columns(3),
        Columns([b"3"], ["k"], [(header, header)]),
    ]
    whole = Columns.joined(parts)

    encoded = encode_columns([part.packed() for part in parts])

    records = [record for part in parts for record in part.records()]
    assert decode_batch(encoded) == records == whole.records() == whole.packed().records()
    assert whole.sizes() == [record.size_bytes for record in records]


def test_columns_without_keys_are_encoded_like_their_records():
    parts = [Columns([b"1", b"2"]), Columns([b""])]

    encoded = encode_columns([part.packed() for part in parts])

    assert encoded == encode_batch([record for part in parts for record in part.records()])


@pytest.mark.parametrize("size", [1, 255, 256, 65_535, 65_536, 300_000])
def test_bodies_of_mixed_sizes_are_encoded_like_records(size):
    each_columns = Columns([b"a" * (size - 1), b"b"])

    assert encode_columns([each_columns.packed()]) == encode_batch(each_columns.records())


@pytest.mark.parametrize("key", ["", "k", "ä", "\N{GRINNING FACE}" * limits.KEY_CHARACTERS_MAX])
def test_first_oversized_record_is_reported(key):
    """Its key counts, in UTF-8."""
    each_columns = Columns([b"", b"a" * 2_000, b"a" * 2_000], [key] * 3)
    size = each_columns.records()[1].size_bytes

    assert each_columns.larger_than(size) is None
    assert each_columns.larger_than(size - 1) == 1


async def test_latest_of_key_finds_record_appended_in_columns(engines):
    await stream(engines, 2, key_index=True)
    await engines.streams.append_columns(CLICKS, Columns([b"1", b"2", b"3"], ["a", "b", "a"]))

    _, newest = await engines.record_reader.latest_of_key(CLICKS, "a")

    assert newest.record.data == b"3"


async def test_busy_store_is_reported_for_unaccepted_records_only(engines, monkeypatch):
    """The others were sent already, and are kept."""
    await stream(engines, 4)
    before = columns(40, 1_000)
    there = placed(before, await engines.streams.append_columns(CLICKS, before))
    hot = engines.streams._appender._hot
    append, parts = hot.append, []

    def busy_after_two(log, part, **options):
        parts.append(part)
        if len(parts) > 2:
            raise StorageBusy
        return append(log, part, **options)

    monkeypatch.setattr(hot, "append", busy_after_two)
    sent = columns(200)

    ranges = await engines.streams.append_columns(CLICKS, sent)

    received_ranges = [each_range for each_range in ranges if each_range.error is None]
    refused = {id(each_range.error) for each_range in ranges if each_range.error is not None}
    assert len(received_ranges) == len(refused) == 2
    assert await everything(engines) == there | placed(sent, received_ranges)
