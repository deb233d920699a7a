"""Consumer groups over WebSockets: assignment, acks that commit, and broken sockets."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest

from storage.domain.groups.group import GroupSpec, ResetSpec, ResetTo
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.conditions import PATIENCE_S, eventually
from tests.websocket_client import Frame, Server, Socket, running_server

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
KNOWN = Limits(push_tick_ms=50, resume_ms=60_000)
SPEC = GroupSpec(stream="clicks", session_timeout_ms=1_500, revoke_timeout_ms=1_500)


@pytest.fixture
async def server(storage) -> AsyncGenerator[Server]:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.groups.put(READERS, SPEC)
    async with running_server(storage, KNOWN) as server:
        yield server


@pytest.fixture
async def forgetful(storage) -> AsyncGenerator[Server]:
    """A server that keeps the sessions of broken sockets briefly."""
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.groups.put(READERS, SPEC)
    async with running_server(storage, msgspec.structs.replace(KNOWN, resume_ms=700)) as server:
        yield server


async def put(storage, shard: int, first: int, count: int) -> None:
    records = [Record(b"%d" % number) for number in range(first, first + count)]
    await storage.streams.append_to_shard(CLICKS, shard, records)


async def share(socket: Socket, sub: str = "a") -> None:
    await socket.subscribe(sub, "stream:clicks", group="readers")


async def assigned(socket: Socket, number: int) -> dict[int, int]:
    """Wait for a socket's shards, at least so many, and their start offsets."""
    found: dict[int, int] = {}
    while len(found) < number:
        for place in (await socket.receive_frame("assigned"))["shards"]:
            found[place["shard"]] = place["offset"]
    return found


async def committed(storage) -> dict[int, int]:
    _, _, shards = await storage.groups.describe(READERS)
    return {
        shard: actual_shard.committed
        for shard, actual_shard in shards.items()
        if actual_shard.committed
    }


def numbers(records: list[Frame]) -> list[int]:
    return [int(record["data"]) for record in records]


async def test_one_socket_reads_every_shard_and_ack_commits(server, storage):
    await put(storage, 0, 0, 3)
    await put(storage, 1, 10, 2)
    async with server.socket() as socket:
        await share(socket)
        shards = await assigned(socket, 2)
        first = await socket.records(3, shard=0)
        await socket.records(2, shard=1)

        await socket.send_frame("ack", sub="a", shard=0, up_to=2)
        reply = await socket.request("ack", sub="a", shard=1, up_to=2)
        done = await committed(storage)

    assert shards == {0: 0, 1: 0}
    assert numbers(first) == [0, 1, 2]
    assert reply["type"] == "ok"
    assert done == {0: 2, 1: 2}


async def test_next_member_continues_at_committed_offset(server, storage):
    await put(storage, 0, 0, 5)
    async with server.socket() as socket:
        await share(socket)
        await socket.records(5)
        await socket.request("ack", sub="a", shard=0, up_to=3)

    async with server.socket() as other:
        await share(other)
        shards = await assigned(other, 2)
        records = await other.records(2)

    assert shards[0] == 3
    assert numbers(records) == [3, 4]


async def test_ack_is_idempotent_and_never_moves_back(server, storage):
    await put(storage, 0, 0, 5)
    async with server.socket() as socket:
        await share(socket)
        await socket.records(5)

        replies = [
            await socket.request("ack", sub="a", shard=0, up_to=up_to) for up_to in (4, 4, 2)
        ]
        beyond = await socket.request("ack", sub="a", shard=0, up_to=99)

    assert [reply["type"] for reply in replies] == ["ok"] * 3
    assert (await committed(storage))[0] == 4
    assert beyond["problem"]["code"] == "offset_out_of_range"


async def test_second_socket_gets_shard_once_released(server, storage):
    await put(storage, 0, 0, 3)
    await put(storage, 1, 0, 3)
    async with server.socket() as socket, server.socket() as other:
        await share(socket)
        await socket.records(3, shard=0)
        await socket.records(3, shard=1)
        await share(other)

        revoking = await socket.receive_frame("revoking")
        [shard] = revoking["shards"]
        await socket.request("ack", sub="a", shard=shard, up_to=1)
        await socket.send_frame("give_up", sub="a", shards=[shard])
        revoked = await socket.receive_frame("revoked")
        shards = await assigned(other, 1)
        records = await other.records(2)
        refused = await socket.request("ack", sub="a", shard=shard, up_to=3)

    assert revoking["deadline_seconds"] == 1.5
    assert revoked["shards"] == [shard]
    assert shards == {shard: 1}
    assert numbers(records) == [1, 2]
    assert refused["problem"]["code"] == "stale_generation"


async def test_fully_acknowledged_shard_is_revoked_without_asking(server, storage):
    await put(storage, 0, 0, 3)
    async with server.socket() as socket, server.socket() as other:
        await share(socket)
        await socket.records(3, shard=0)
        await socket.request("ack", sub="a", shard=0, up_to=3)
        await share(other)

        await socket.receive_frame("revoked")
        await assigned(other, 1)
        await socket.expect_nothing("revoking", seconds=0.1)


async def test_unreleased_shard_is_revoked_at_deadline(server, storage):
    await put(storage, 0, 0, 3)
    await put(storage, 1, 0, 3)
    async with server.socket() as socket, server.socket() as other:
        await share(socket)
        await socket.records(6)
        await share(other)
        await socket.receive_frame("revoking")

        shards = await assigned(other, 1)
        revoked = await socket.receive_frame("revoked")

    assert revoked["shards"] == list(shards)


async def test_disconnected_member_keeps_its_shards_until_timeout(forgetful, storage):
    async with forgetful.socket() as socket, forgetful.socket() as other:
        await share(socket)
        await assigned(socket, 2)
        await share(other)
        await assigned(other, 1)
        socket.cut()

        await other.expect_nothing("assigned", seconds=0.4)
        await assigned(other, 1)


async def test_resumed_member_keeps_shards_and_misses_nothing(server, storage):
    await put(storage, 0, 0, 3)
    async with server.socket() as socket:
        await share(socket)
        first = await socket.receive_frame("records")
        await put(storage, 0, 3, 3)
        await socket.receive_frame("records")
        socket.cut()

    async with server.socket(greet=False) as again:
        resume = {"session": socket.welcome["session"], "seq": first["seq"]}
        await again.hello(resume=resume)
        shards = await assigned(again, 2)
        records = await again.records(3)
        request = await again.request("ack", sub="a", shard=0, up_to=6)

    assert shards[0] == 3
    assert numbers(records) == [3, 4, 5]
    assert request["type"] == "ok"


async def test_resume_before_partly_acked_frame_sends_its_rest(server, storage):
    """The rest of a frame of which a part was committed was passed over."""
    async with server.socket() as socket:
        await share(socket)
        await assigned(socket, 2)
        before = {"session": socket.welcome["session"], "seq": 0}
        await put(storage, 0, 0, 5)
        await socket.records(5)
        await socket.request("ack", sub="a", shard=0, up_to=2)
        socket.cut()

    async with server.socket(greet=False) as again:
        await again.hello(resume=before)
        records = await again.records(3)

    assert numbers(records) == [2, 3, 4]


async def test_closed_socket_leaves_group_immediately(server, storage):
    async with server.socket() as other:
        async with server.socket() as socket:
            await share(socket)
            await assigned(socket, 2)
            await share(other)
            await assigned(other, 1)

        async with asyncio.timeout(0.6):  # far below the session timeout
            await assigned(other, 1)


async def test_children_follow_once_their_parent_is_committed(server, storage):
    await put(storage, 0, 0, 3)
    async with server.socket() as socket:
        await share(socket)
        await socket.records(3, shard=0)
        await storage.streams.resharder.split(CLICKS, 0, RING_SIZE // 4)
        await socket.receive_frame("shard_ended")
        await put(storage, 2, 10, 1)
        await socket.expect_nothing("records", seconds=0.3)

        await socket.request("ack", sub="a", shard=0, up_to=3)
        records = await socket.records(1, shard=2)

    assert numbers(records) == [10]


async def test_parent_committed_before_closing_is_finished(server, storage):
    await put(storage, 0, 0, 3)
    async with server.socket() as socket:
        await share(socket)
        await socket.records(3, shard=0)
        await socket.request("ack", sub="a", shard=0, up_to=3)
        await storage.streams.resharder.split(CLICKS, 0, RING_SIZE // 4)
        await put(storage, 2, 10, 1)

        records = await socket.records(1, shard=2)

    assert numbers(records) == [10]


async def test_reset_moves_active_member(server, storage):
    await put(storage, 0, 0, 5)
    async with server.socket() as socket:
        await share(socket)
        await socket.records(5)
        await socket.request("ack", sub="a", shard=0, up_to=5)
        await storage.groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))

        await socket.receive_frame("revoked")
        records = await socket.records(5)

    assert numbers(records) == [0, 1, 2, 3, 4]


async def test_deleting_group_ends_its_subscriptions(server, storage):
    async with server.socket() as socket:
        await share(socket)
        await assigned(socket, 2)
        await storage.groups.delete(READERS)

        frame = await socket.receive_frame("error", sub="a")

    assert frame["problem"]["code"] == "group_not_found"


async def test_group_of_another_stream_is_rejected(server, storage):
    await storage.catalog.put_stream(StreamName("others"), StreamSpec())
    async with server.socket() as socket:
        reply = await socket.request("subscribe", sub="a", source="stream:others", group="readers")

    assert reply["problem"]["errors"][0]["pointer"] == "/source"


async def test_queue_settlements_are_rejected_for_group(server):
    async with server.socket() as socket:
        await share(socket)
        reply = await socket.request("nack", sub="a", receipt_handles=["x"])

    assert reply["problem"]["errors"][0]["pointer"] == "/up_to"


async def test_group_at_latest_starts_there(storage):
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await put(storage, 0, 0, 3)
    late = GroupName("late")
    await storage.groups.put(late, GroupSpec(stream="clicks", start=StartAt.LATEST))
    async with running_server(storage, Limits()) as server, server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", group="late")
        await assigned(socket, 1)
        await put(storage, 0, 3, 1)

        records = await socket.records(1)

    assert numbers(records) == [3]


async def test_every_record_is_committed_while_members_change(server, storage):
    """Members read, ack and leave differently; finally the group is at the end of both shards."""
    total = 60

    async def work(nth: int) -> None:
        for round_ in range(3):
            async with server.socket() as socket:
                await share(socket)
                try:
                    async with asyncio.timeout(1.5):
                        while True:
                            frame = await socket.receive_frame("records", "revoking")
                            if frame["type"] == "revoking":
                                await socket.send_frame("give_up", sub="a", shards=frame["shards"])
                                continue
                            await socket.request(
                                "ack", sub="a", shard=frame["shard"], up_to=frame["next_offset"]
                            )
                except TimeoutError:
                    pass
                if (nth + round_) % 2:
                    socket.cut()

    async def write() -> None:
        for first in range(0, total, 5):
            await put(storage, 0, first, 5)
            await put(storage, 1, first, 5)
            await asyncio.sleep(0.1)

    await asyncio.gather(write(), *(work(nth) for nth in range(3)))
    async with server.socket() as last:
        await share(last)
        async with asyncio.timeout(PATIENCE_S):
            while await committed(storage) != {0: total, 1: total}:
                frame = await last.receive_frame("records", "assigned")
                if frame["type"] == "records":
                    await last.request(
                        "ack", sub="a", shard=frame["shard"], up_to=frame["next_offset"]
                    )


async def test_pause_and_resume_of_group_are_announced(server, storage):
    async with server.socket() as socket:
        await share(socket)
        await assigned(socket, 2)

        await storage.groups.pause(READERS, paused=True)
        paused = await socket.receive_frame("paused")
        await put(storage, 0, 0, 1)
        await socket.expect_nothing("records", seconds=0.2)
        await storage.groups.pause(READERS, paused=False)
        await socket.receive_frame("resumed")
        frame = await socket.receive_frame("records")

    assert (paused["sub"], paused["reason"]) == ("a", "group")
    assert (frame["shard"], len(frame["records"])) == (0, 1)


async def test_subscription_to_paused_group_is_told_at_start(server, storage):
    await storage.groups.pause(READERS, paused=True)
    await put(storage, 0, 0, 1)

    async with server.socket() as socket:
        await share(socket)
        paused = await socket.receive_frame("paused")
        await socket.expect_nothing("records", seconds=0.2)

    assert paused["reason"] == "group"


# ── Filters ──


async def test_lag_falls_although_filter_selects_nothing(server, storage):
    await put(storage, 0, 0, 5)
    async with server.socket() as socket:
        await socket.subscribe(
            "a", "stream:clicks", group="readers", filter={"match": {"subject": "order.*"}}
        )
        await put(storage, 1, 0, 3)

        await eventually(lambda: committed(storage), {0: 5, 1: 3})


async def test_filtered_records_behind_unacknowledged_one_are_not_committed(server, storage):
    await put(storage, 0, 0, 5)
    match = {"where": "body = 2"}
    async with server.socket() as socket:
        await socket.subscribe("a", "stream:clicks", group="readers", filter={"match": match})
        await put(storage, 1, 0, 2)
        [record] = await socket.records(1)
        await eventually(lambda: committed(storage), {1: 2})

        await socket.request("ack", sub="a", shard=0, up_to=record["offset"] + 1)
        await put(storage, 0, 5, 1)
        await put(storage, 1, 2, 1)
        [last] = await socket.records(1)
        before = await committed(storage)

    assert (record["offset"], last["offset"]) == (2, 2)
    assert before[0] == 3
