"""A stream over WebSockets: positions, filters, reshards, broken and many sockets."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack

import pytest

from api.native.cursors import encode_records_cursor
from storage.domain.limits import CLOSED_SHARD_MS_MIN, Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.archive_steps import archive_stream
from tests.websocket_client import Frame, Server, Socket, running_server

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
DAY_MS = 86_400_000
EARLIEST = {"from": "earliest"}
ALL = {"messages": 10_000, "bytes": 2**24}


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    async with running_server(storage, Limits(push_tick_ms=50, resume_ms=60_000)) as server:
        yield server


async def put(storage, first: int, count: int, *, key: str = "k", **fields) -> None:
    records = [Record(b"%d" % number, key, **fields) for number in range(first, first + count)]
    for result in await storage.streams.append(CLICKS, records):
        assert not isinstance(result, Exception), result


def numbers(records: Sequence[Frame]) -> list[int]:
    return [int(record["data"]) for record in records]


# ── Positions ──


async def test_records_arrive_as_they_are_appended(server, storage):
    await put(storage, 0, 3)
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks")  # from the latest on
        await put(storage, 3, 2)

        frame = await socket.receive_frame("records")

    assert numbers(frame["records"]) == [3, 4]
    assert (frame["shard"], frame["next_offset"], frame["tip"]) == (0, 5, 5)
    assert frame["records"][0]["offset"] == 3


async def test_subscription_starts_at_requested_position(server, storage):
    await put(storage, 0, 3)
    async with server.socket() as probe:
        await probe.subscribe("a", "stream:clicks", start=EARLIEST)
        first = await probe.records(3)
    async with server.socket() as socket:
        starts = {
            "earliest": EARLIEST,
            "offset": {"offsets": {"0": 1}},
            "time": {"time": first[0]["arrival_time"]},
            "future": {"time": "2999-01-01T00:00:00Z"},
        }
        for sub, start in starts.items():
            await socket.subscribe(sub, "stream:clicks", start=start)
        fields = {
            "earliest": numbers(await socket.records(3, sub="earliest")),
            "offset": numbers(await socket.records(2, sub="offset")),
            "time": numbers(await socket.records(3, sub="time")),
        }
        await put(storage, 3, 1)
        fields["future"] = numbers(await socket.records(1, sub="future"))

    assert fields == {"earliest": [0, 1, 2], "offset": [1, 2], "time": [0, 1, 2], "future": [3]}


async def test_rest_cursor_is_position(server, storage):
    await put(storage, 0, 3)
    stream = await storage.catalog.stream(CLICKS)
    cursor = encode_records_cursor(stream.stream_id, {0: 2})
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start={"cursor": cursor})
        records = await socket.records(1)
        refused = await socket.request(
            "subscribe", sub="b", source="stream:clicks", start={"cursor": "x"}
        )

    assert numbers(records) == [2]
    assert refused["problem"]["code"] == "invalid_cursor"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"source": "stream:nowhere"}, "stream_not_found"),
        ({"shard": 7}, "shard_not_found"),
        ({"start": {"offsets": {"7": 0}}}, "shard_not_found"),
        ({"start": {"offsets": {"0": 1}}}, "offset_out_of_range"),
        ({"start": {"offsets": {"0": 0, "1": 0}}, "shard": 0}, "validation_failed"),
        ({"filter": {"keys": []}}, "validation_failed"),
        ({"start": {"from": "earliest", "time": "2020-01-01T00:00:00Z"}}, "validation_failed"),
        ({"mode": "work"}, "validation_failed"),
        ({"mode": "group"}, "validation_failed"),
        ({"auto_extend": True}, "validation_failed"),
        ({"filter": {"body": [{"path": "x", "exists": True}]}}, "validation_failed"),
        ({"filter": {"match": {"where": "total >"}}}, "match_invalid"),
        ({"filter": {"match": {"subject": "a..b"}}}, "match_invalid"),
        ({"group": "nowhere"}, "group_not_found"),
    ],
)
async def test_invalid_subscription_returns_problem(server, fields, code):
    async with server.socket() as socket:
        request = {"source": "stream:clicks", **fields}
        reply = await socket.request("subscribe", sub="a", **request)

    assert reply["problem"]["code"] == code


async def test_subscription_id_is_unique(server):
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks")
        reply = await socket.request("subscribe", sub="a", source="stream:clicks")

    assert reply["problem"]["errors"][0]["pointer"] == "/sub"


# ── Credit and filters ──


async def test_credit_limits_records_and_bytes(server, storage):
    await put(storage, 0, 100)
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "stream:clicks", start=EARLIEST, credit={"messages": 7, "bytes": 1000}
        )
        first = await socket.records(7)
        await socket.expect_nothing("records", seconds=0.1)
        await socket.send_frame("credit", sub="a", messages=1000, bytes=0)
        rest = await socket.records(93)

    assert numbers(first + rest) == list(range(100))
    assert len(first) == 7


async def test_only_filtered_records_are_sent_and_use_credit(server, storage):
    await put(storage, 0, 50, key="dull")
    await put(storage, 50, 1, key="bright")
    await put(storage, 51, 50, key="dull")
    await put(storage, 101, 1, key="bright")
    async with server.socket() as socket:
        await socket.subscribe(
            "a",
            "stream:clicks",
            start=EARLIEST,
            filter={"keys": ["bright"]},
            credit={"messages": 1, "bytes": 1000},
        )
        first = await socket.receive_frame("records")
        await socket.expect_nothing("records", seconds=0.1)
        await socket.send_frame("credit", sub="a", messages=1)
        second = await socket.receive_frame("records")

    assert numbers(first["records"] + second["records"]) == [50, 101]
    assert first["next_offset"] <= 101


# ── Broken sockets ──


async def test_resumed_reader_misses_and_repeats_nothing(server, storage):
    await put(storage, 0, 30)
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "stream:clicks", start=EARLIEST, credit={"messages": 10, "bytes": 10_000}
        )
        first = await socket.receive_frame("records")
        await socket.send_frame("credit", sub="a", messages=10, bytes=10_000)
        await socket.receive_frame("records")  # and then it broke
        socket.cut()
    await put(storage, 30, 5)

    async with server.socket(greet=False) as again:
        before = {"session": socket.welcome["session"], "seq": first["seq"]}
        welcome = await again.hello(resume=before)
        await again.send_frame("credit", sub="a", **ALL)
        records = await again.records(35 - len(first["records"]))

    assert welcome["resumed"]
    assert numbers(first["records"] + records) == list(range(35))


async def test_reader_disconnected_at_random_gets_each_record_once(server, storage):
    chance = random.Random(7)
    total = 400

    async def write() -> None:
        for first in range(0, total, 8):
            await put(storage, first, 8)
            await asyncio.sleep(0.01)

    async def read(seed: int) -> list[int]:
        own = random.Random(seed)
        found: list[int] = []
        resume = None
        while len(found) < total:
            async with server.socket(greet=False) as socket:
                if resume is None:
                    await socket.hello()
                    start = {"offsets": {"0": len(found)}}
                    await socket.subscribe("a", "stream:clicks", start=start, credit=ALL)
                else:
                    welcome = await socket.hello(resume=resume)
                    assert welcome["resumed"]
                for _ in range(own.randrange(1, 6)):
                    frame = await socket.receive_frame("records")
                    found += numbers(frame["records"])
                    resume = {"session": socket.welcome["session"], "seq": frame["seq"]}
                    if len(found) >= total:
                        break
                socket.cut()
        return found

    _, *all_found = await asyncio.gather(write(), *(read(chance.randrange(1000)) for _ in range(4)))

    assert all(found == list(range(total)) for found in all_found)


async def test_five_hundred_sessions_resume_concurrently(server, storage):
    """After the restart of a proxy, for example: each continues at its position."""
    async with AsyncExitStack() as stack:
        some = [await stack.enter_async_context(server.socket()) for _ in range(500)]
        for socket in some:
            await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)
        await put(storage, 0, 10)
        for socket in some:
            await socket.records(10)
        for socket in some:
            socket.cut()
    await put(storage, 10, 10)

    async def come_back(before: Socket) -> list[int]:
        async with server.socket(greet=False) as socket:
            welcome = await socket.hello(resume={"session": before.welcome["session"], "seq": 1})
            assert welcome["resumed"]
            return numbers(await socket.records(10))

    results = await asyncio.gather(*(come_back(socket) for socket in some))

    assert results == [list(range(10, 20))] * 500


# ── Changes of the stream ──


async def expire_parents(storage, clock) -> None:
    """Merge the stream's two shards into one, and let them expire."""
    await storage.streams.resharder.merge(CLICKS, 0, 1)
    clock.advance(ms=CLOSED_SHARD_MS_MIN + 2 * DAY_MS)
    while await storage.streams.trim(CLICKS, 10_000):
        pass
    assert await storage.streams.expire_shards(CLICKS) == 2


@pytest.fixture
async def halves(engines) -> AsyncGenerator[Server]:
    """A stream of two shards, on a manual clock."""
    await engines.catalog.put_stream(CLICKS, StreamSpec(shards=2, retention_ms=DAY_MS))
    async with running_server(engines, Limits(push_tick_ms=50, resume_ms=60_000)) as server:
        yield server


async def hear_gaps(socket: Socket) -> list[tuple[int, int, int, str]]:
    frames = [await socket.receive_frame("gap") for _ in range(2)]
    return sorted((gap["shard"], gap["first"], gap["next"], gap["reason"]) for gap in frames)


async def test_positions_in_expired_shards_are_gaps(halves, engines, clock):
    await expire_parents(engines, clock)
    await put(engines, 7, 1)
    async with halves.socket() as socket:
        start = {"offsets": {"0": 3, "1": 4}}
        await socket.subscribe("a", "stream:clicks", start=start)

        gaps = await hear_gaps(socket)
        frame = await socket.receive_frame("records")

    assert gaps == [(0, 3, 3, "expired"), (1, 4, 4, "expired")]
    assert (frame["shard"], numbers(frame["records"])) == (2, [7])


async def test_undelivered_gap_is_sent_again(halves, engines, clock):
    await expire_parents(engines, clock)
    async with halves.socket() as socket:
        start = {"offsets": {"0": 3, "1": 4}}
        await socket.subscribe("a", "stream:clicks", start=start)
        await hear_gaps(socket)
        session = socket.welcome["session"]
        socket.cut()
    async with halves.socket(greet=False) as socket:
        await socket.hello(resume={"session": session, "seq": 0})

        gaps = await hear_gaps(socket)
        await put(engines, 7, 1)
        records = await socket.records(1)

    assert gaps == [(0, 3, 3, "expired"), (1, 4, 4, "expired")]
    assert numbers(records) == [7]


async def test_shard_expiring_while_read_is_reported_as_gap(halves, engines, clock):
    async with halves.socket() as socket:
        start = {"from": "earliest"}
        await socket.subscribe(
            "a", "stream:clicks", start=start, credit={"messages": 0, "bytes": 0}
        )
        for number in range(8):
            await put(engines, number, 1, key=f"k{number}")
        await expire_parents(engines, clock)
        await put(engines, 8, 1)
        await socket.send_frame("credit", sub="a", **ALL)

        gaps = await hear_gaps(socket)
        records = await socket.records(1)

    assert gaps == [(0, 0, 0, "expired"), (1, 0, 0, "expired")]
    assert numbers(records) == [8]


async def test_expired_records_are_reported_as_gap(server, storage):
    await put(storage, 0, 5)
    await put(storage, 5, 5)
    await storage.streams.truncate(CLICKS, 0, 5)
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start={"offsets": {"0": 2}})

        gap = await socket.receive_frame("gap")
        records = await socket.records(5)

    assert (gap["shard"], gap["first"], gap["next"], gap["reason"]) == (0, 2, 5, "expired")
    assert numbers(records) == [5, 6, 7, 8, 9]


async def test_children_follow_their_parents(server, storage):
    keys = [f"key-{number}" for number in range(20)]
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)
        for key in keys:
            await put(storage, 1, 1, key=key)
        await storage.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
        for key in keys:
            await put(storage, 2, 1, key=key)
        records = await socket.records(20, shard=0)
        ended = await socket.receive_frame("shard_ended")
        later: list[Frame] = []
        while len(later) < 20:
            frame = await socket.receive_frame("records")
            assert frame["shard"] in (1, 2)
            later += frame["records"]
        await storage.streams.resharder.merge(CLICKS, 1, 2)
        await put(storage, 3, 1)
        last = await socket.receive_frame("records", shard=3)

    assert numbers(records) == [1] * 20
    assert ended["children"] == [1, 2]
    assert sorted(record["key"] for record in later) == sorted(keys)
    assert numbers(last["records"]) == [3]


async def test_undelivered_end_of_shard_is_sent_again(server, storage):
    await put(storage, 0, 3)
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)
        first = await socket.receive_frame("records")
        await storage.streams.resharder.split(CLICKS, 0, RING_SIZE // 2)
        await put(storage, 3, 1)
        await socket.receive_frame("shard_ended")
        await socket.receive_frame("records")  # of a child
        socket.cut()

    async with server.socket(greet=False) as again:
        await again.hello(resume={"session": socket.welcome["session"], "seq": first["seq"]})
        ended = await again.receive_frame("shard_ended")
        records = await again.records(1)

    assert ended["shard"] == 0
    assert numbers(records) == [3]


async def recreate(storage, count: int) -> None:
    await storage.catalog.delete_stream(CLICKS)
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    if count:
        await put(storage, 0, count)


@pytest.mark.parametrize("count", [8, 2], ids=["more", "fewer"])
async def test_resumed_session_does_not_read_recreated_stream(server, storage, count):
    """The old offset was read on at in the new stream, whose first records never came."""
    await put(storage, 0, 5)
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)
        await socket.records(5)
        socket.cut()
    await recreate(storage, count)

    async with server.socket(greet=False) as again:
        await again.hello(resume={"session": socket.welcome["session"], "seq": 1})
        frame = await again.receive_frame("error", sub="a")

    assert frame["problem"]["code"] in ("stream_recreated", "stream_not_found")


@pytest.mark.parametrize("count", [8, 2], ids=["more", "fewer"])
async def test_start_in_deleted_stream_is_rejected(server, storage, count):
    await put(storage, 0, 5)
    async with server.socket() as socket:
        told = await socket.request(
            "subscribe", sub="a", source="stream:clicks", start={"offsets": {0: 5}}
        )
        cursor = encode_records_cursor(told["stream_id"], {0: 5})
        await recreate(storage, count)
        refused = [
            await socket.request("subscribe", sub=sub, source="stream:clicks", start=start)
            for sub, start in (
                ("b", {"offsets": {0: 5}, "stream_id": told["stream_id"]}),
                ("c", {"cursor": cursor}),
                ("d", {"from": "latest", "stream_id": told["stream_id"]}),
            )
        ]

    codes = [frame["problem"]["code"] for frame in refused]
    assert codes == ["stream_recreated", "invalid_cursor", "validation_failed"]


async def test_deleting_stream_ends_its_subscriptions(server, storage):
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks")
        await storage.catalog.delete_stream(CLICKS)

        frame = await socket.receive_frame("error", sub="a")

    assert frame["problem"]["code"] == "stream_not_found"


async def test_history_comes_from_archive_in_same_frames(storage, settings):
    await storage.catalog.put_stream(CLICKS, StreamSpec(hot_retention_ms=0))
    await put(storage, 0, 20)
    await archive_stream(storage, settings, CLICKS)
    while await storage.streams.trim(CLICKS, 1_000):
        pass
    await put(storage, 20, 5)
    async with running_server(storage, Limits()) as server, server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)

        records = await socket.records(25)

    assert numbers(records) == list(range(25))


async def test_both_subprotocols_carry_same_records(server, storage):
    await put(storage, 0, 40)
    async with server.socket() as text, server.socket(packed=True) as packed:
        for socket in (text, packed):
            await socket.subscribe("a", "stream:clicks", start=EARLIEST, credit=ALL)
        ones, others = await text.records(40), await packed.records(40)

    assert [one["data"].encode() for one in ones] == [other["data"] for other in others]
    assert [one["arrival_time"] for one in ones] == [other["arrival_time"] for other in others]
