"""Webhooks of a group: in order per shard, skipping nothing, whatever the receiver does."""

import asyncio
from typing import Any

import pytest

from consumers.webhooks.deliverer import source_of
from consumers.webhooks.manual_delivery import Requested
from consumers.webhooks.payload import Rendered, render
from consumers.webhooks.shard_source import MemberGeneration, ShardSource
from storage.domain import limits
from storage.domain.errors import StaleGeneration, ValidationFailed
from storage.domain.groups.group import GroupKind, GroupSpec, ResetSpec, ResetTo
from storage.domain.limits import HOUR_MS, MINUTE_MS, SECOND_MS
from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin, origin_of
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import StreamSpec
from storage.domain.webhooks import BodyFormat, DeliveryStatus, Event, OnFailure
from tests.integration.webhooks.conftest import ALLOW, HOOK, Bench
from tests.webhook_receiver import close, hang, respond_with

pytestmark = pytest.mark.one_store

CLICKS = StreamName("clicks")
READERS = GroupName("readers")
DEAD = QueueName("dead")


async def group_hook(bench: Bench, shards: int = 1, **more: object) -> None:
    """Create a webhook of a group that reads a stream."""
    await bench.storage.catalog.put_stream(CLICKS, StreamSpec(shards=shards))
    await bench.storage.groups.put(READERS, GroupSpec(stream="clicks"))
    await bench.hook("group:readers", **more)


async def append(storage, *bodies: bytes, shard: int = 0) -> None:
    await storage.streams.append_to_shard(CLICKS, shard, [Record(body) for body in bodies])


async def committed(storage) -> dict[int, int | None]:
    _, _, shards = await storage.groups.describe(READERS)
    return {shard: group_shard.committed for shard, group_shard in shards.items()}


async def test_records_are_posted_in_order_and_committed(bench, storage, receiver):
    await group_hook(bench)
    headers = ((CONTENT_TYPE, "", b"text/plain"), ("a", "", b"b"))
    await storage.streams.append(CLICKS, [Record(b"0", key="user-1", headers=headers)])
    await append(storage, b"1", b"2")

    await (await bench.group_source()).round()

    stream = await storage.catalog.stream(CLICKS)
    assert receiver.bodies == [b"0", b"1", b"2"]
    assert [got.event_id for got in receiver.requests] == [
        f"{stream.stream_id}-0-{n}" for n in range(3)
    ]
    first = receiver.requests[0].headers
    assert (first["content-type"], first["millstream-header-a"]) == ("text/plain", "b")
    assert (first["millstream-stream"], first["millstream-key"]) == ("clicks", "user-1")
    assert (first["millstream-shard"], first["millstream-offset"]) == ("0", "0")
    assert await committed(storage) == {0: 3}


async def test_failed_record_is_retried_in_order(bench, storage, receiver, clock):
    await group_hook(bench)
    await append(storage, b"0", b"1", b"2")
    receiver.behaviours = [respond_with(), respond_with(500), close]
    source = await bench.group_source()

    await source.round()
    after_one = receiver.bodies
    clock.advance(5 * SECOND_MS - 1)
    await source.round()
    early = receiver.bodies
    clock.advance(1)
    await source.round()
    clock.advance(5 * MINUTE_MS)
    await source.round()

    assert after_one == early == [b"0", b"1"]
    assert receiver.bodies == [b"0", b"1", b"1", b"1", b"2"]
    assert len({got.event_id for got in receiver.requests}) == 3
    assert await committed(storage) == {0: 3}


async def test_other_shards_continue_while_one_waits(bench, storage, receiver):
    await group_hook(bench, shards=2)
    await append(storage, b"bad", b"behind", shard=0)
    receiver.behaviours = [respond_with(500)]
    source = await bench.group_source()
    await source.round()

    await append(storage, b"one", b"two", shard=1)
    await source.round()

    assert receiver.bodies == [b"bad", b"one", b"two"]


async def test_record_blocks_its_shard_visibly_after_last_retry(bench, storage, receiver, clock):
    await group_hook(bench, retry_delays_ms=(MINUTE_MS,))
    await append(storage, b"bad", b"behind")
    receiver.behaviours = [respond_with(500), respond_with(500), respond_with(500)]
    source = await bench.group_source()

    await source.round()
    for _ in range(2):
        clock.advance(MINUTE_MS)
        await source.round()
    await bench.delivery_log.flush()
    blocked = (await storage.webhooks.get(HOOK)).health.blocked
    clock.advance(MINUTE_MS)
    await source.round()
    await bench.delivery_log.flush()

    assert blocked == {0: "offset 0: 500"}
    assert receiver.bodies == [b"bad"] * 4 + [b"behind"]
    assert (await storage.webhooks.get(HOOK)).health.blocked == {}


@pytest.mark.parametrize("type_", list(QueueType))
async def test_record_is_dead_lettered_to_queue_and_shard_continues(
    bench, storage, receiver, clock, type_
):
    await storage.catalog.put_queue(DEAD, QueueSpec(type=type_))
    more: dict[str, Any] = {"on_failure": OnFailure.DEAD_LETTER, "dead_letter_queue": "dead"}
    await group_hook(bench, retry_delays_ms=(), **more)
    await append(storage, b"bad", b"good")
    receiver.behaviours = [respond_with(400, b"no such order")]

    await (await bench.group_source()).round()

    [letter] = await storage.queues.receive(DEAD)
    assert letter.body == b"bad"
    assert {name: value for name, _, value in letter.system}[":source_offset"] == b"0"
    assert origin_of(letter.system) == DeadLetterOrigin(
        source="group:readers",
        reason="400",
        died_at_ms=clock.now_ms(),
        failures=1,
        crash_count=0,
        details="no such order",
    )
    assert receiver.bodies == [b"bad", b"good"]
    assert [delivery.status for delivery in await bench.deliveries()] == [
        DeliveryStatus.FAILED,
        DeliveryStatus.DELIVERED,
    ]
    assert await committed(storage) == {0: 2}


DEEP = b"[" * 100_000 + b"]" * 100_000
POISON = {
    "empty": Record(b""),
    "long key": Record(b"x", "k" * 256),
    "key with spaces": Record(b"x", " k\t"),
    "binary header": Record(b"x", "k", (("h\r\nx: y", "", b"\x00\r\n\xff"),)),
    "32 headers": Record(b"x", "k", tuple((f"h{n}", "", b"v" * 5_000) for n in range(32))),
    "content type": Record(b"x", "k", ((CONTENT_TYPE, "", b"a\r\nx: \xff"),)),
    "deep JSON": Record(DEEP, "k", ((CONTENT_TYPE, "", b"application/json"),)),
}
"""Records that a request or a message cannot contain as they are."""


@pytest.mark.parametrize("form", list(BodyFormat))
@pytest.mark.parametrize("type_", list(QueueType))
@pytest.mark.parametrize("poison", POISON)
async def test_no_record_blocks_its_shard(bench, storage, receiver, clock, poison, type_, form):
    """A key of more than 128 characters was no group of the dead-letter queue; its shard waited."""
    await storage.catalog.put_queue(DEAD, QueueSpec(type=type_))
    more: dict[str, Any] = {"on_failure": OnFailure.DEAD_LETTER, "dead_letter_queue": "dead"}
    await group_hook(bench, retry_delays_ms=(), format=form, **more)
    await storage.streams.append_to_shard(CLICKS, 0, [POISON[poison], Record(b"good")])
    receiver.behaviours = [respond_with(400)]

    await (await bench.group_source()).round()

    [letter] = await storage.queues.receive(DEAD)
    assert receiver.requests[-1].body.count(b"good") == 1
    assert letter.body == POISON[poison].data
    assert await committed(storage) == {0: 2}


async def test_record_that_cannot_be_rendered_is_failed(bench, storage, receiver, monkeypatch):
    await storage.catalog.put_queue(DEAD, QueueSpec())
    more: dict[str, Any] = {"on_failure": OnFailure.DEAD_LETTER, "dead_letter_queue": "dead"}
    await group_hook(bench, retry_delays_ms=(), **more)
    await append(storage, b"bad", b"good")

    def render_good(event: Event, *options: Any) -> Rendered:
        if event.payload == b"bad":
            raise OverflowError("date value out of range")
        return render(event, *options)

    monkeypatch.setattr("consumers.webhooks.http_sender.render", render_good)
    await (await bench.group_source()).round()

    [letter] = await storage.queues.receive(DEAD)
    origin = origin_of(letter.system)
    assert origin is not None
    assert "date value out of range" in origin.reason
    assert (letter.body, receiver.bodies) == (b"bad", [b"good"])


async def test_full_dead_letter_queue_blocks_shard_without_loss(bench, storage, receiver, clock):
    await storage.catalog.put_queue(DEAD, QueueSpec(messages_max=1))
    more: dict[str, Any] = {"on_failure": OnFailure.DEAD_LETTER, "dead_letter_queue": "dead"}
    await group_hook(bench, retry_delays_ms=(), **more)
    await append(storage, b"one", b"two")
    receiver.default_behaviour = respond_with(400)
    source = await bench.group_source()

    await source.round()
    full = await committed(storage)
    await storage.queues.purge(DEAD)
    clock.advance(5 * SECOND_MS)
    await source.round()

    [letter] = await storage.queues.receive(DEAD)
    assert full == {0: 1}
    assert letter.body == b"two"
    assert await committed(storage) == {0: 2}


async def test_next_deliverer_continues_retry_schedule(bench, storage, receiver, clock):
    await group_hook(bench, retry_delays_ms=(HOUR_MS, 2 * HOUR_MS))
    await append(storage, b"bad", b"behind")
    receiver.behaviours = [respond_with(500), respond_with(500)]
    await (await bench.group_source()).round()
    await bench.delivery_log.flush()

    clock.advance(11 * SECOND_MS)  # its lease has expired
    heir = await bench.group_source()
    await heir.round()
    early = receiver.bodies
    clock.advance(HOUR_MS)
    await heir.round()

    assert early == [b"bad"]
    assert receiver.requests[1].headers["millstream-attempt"] == "2"


async def test_enabling_webhook_retries_immediately(bench, storage, receiver, clock):
    await group_hook(bench)
    await append(storage, b"bad")
    receiver.behaviours = [respond_with(500)] * 2
    source = await bench.group_source()
    await source.round()
    clock.advance(5 * SECOND_MS)
    await source.round()
    await bench.delivery_log.flush()

    clock.advance(11 * SECOND_MS)
    await storage.webhooks.enable(HOOK)
    await (await bench.group_source()).round()

    assert receiver.bodies == [b"bad"] * 3
    assert await committed(storage) == {0: 1}


async def test_stale_group_member_commits_nothing(bench, storage, receiver, clock):
    await group_hook(bench)
    former = await bench.group_source()
    clock.advance(11 * SECOND_MS)
    heir = await bench.group_source()
    await append(storage, b"0")

    with pytest.raises(StaleGeneration):
        await former.heartbeat()
    with pytest.raises(StaleGeneration):
        await former.round()
    await heir.round()

    assert receiver.bodies == [b"0", b"0"]
    assert await committed(storage) == {0: 1}


async def test_children_are_delivered_after_their_parent(bench, storage, receiver, clock):
    await group_hook(bench)
    for number in range(5):
        await storage.streams.append(CLICKS, [Record(b"%d" % number, key="user-1")])
    receiver.behaviours = [respond_with(), respond_with(), respond_with(500)]
    source = await bench.group_source()
    await source.round()

    await storage.streams.resharder.set_shard_count(CLICKS, 2)
    for number in range(5, 9):
        await storage.streams.append(CLICKS, [Record(b"%d" % number, key="user-1")])
    await source.heartbeat()
    await source.round()
    meanwhile = receiver.bodies
    clock.advance(5 * SECOND_MS)
    for _ in range(3):
        await source.round()
        await source.heartbeat()
    await source.round()

    assert meanwhile == [b"0", b"1", b"2"]
    assert receiver.bodies == [b"0", b"1", b"2", b"2", *(b"%d" % n for n in range(3, 9))]


async def test_missing_records_are_delivered_as_gap(bench, storage, receiver, clock):
    await group_hook(bench)
    await append(storage, *[b"%d" % number for number in range(5)])
    source = await bench.group_source()
    await storage.streams.truncate(CLICKS, 0, 3)
    await storage.groups.positions.reset(READERS, ResetSpec(to=ResetTo.OFFSETS, offsets={0: 1}))
    await source.join()

    await (await _anew(bench, clock)).round()

    *others, gap = await bench.deliveries()
    assert receiver.bodies == [b"3", b"4"]
    assert (gap.status, gap.event_id.rpartition("-")[2]) == (DeliveryStatus.GAP, "1")
    assert len(others) == 2
    assert "1 to 2" in (await storage.webhooks.get(HOOK)).health.last_failure


async def _anew(bench, clock):
    clock.advance(11 * SECOND_MS)
    return await bench.group_source()


async def test_hanging_receiver_blocks_only_its_shard_until_timeout(
    bench, storage, receiver, clock
):
    await group_hook(bench, timeout_ms=200)
    await append(storage, b"0", b"1")
    receiver.behaviours = [hang]
    source = await bench.group_source()

    await source.round()
    clock.advance(5 * SECOND_MS)
    await source.round()

    assert receiver.bodies == [b"0", b"0", b"1"]


async def test_webhook_requires_group_with_members(bench, storage):
    await storage.catalog.put_stream(CLICKS, StreamSpec())
    await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))

    with pytest.raises(ValidationFailed, match="no"):
        await bench.hook("group:readers")


async def test_shards_are_released_to_other_member_while_being_read(bench, storage, receiver):
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
    await storage.groups.put(READERS, GroupSpec(stream="clicks", session_timeout_ms=SECOND_MS))
    await bench.hook("group:readers")
    source = source_of(await bench.endpoint(), storage)
    serving = asyncio.create_task(source.run())
    for shard in range(4):
        await append(storage, b"%d" % shard, shard=shard)
    await receiver.until(4)

    membership = await storage.groups.join(READERS, member_id="other")
    async with asyncio.timeout(4):
        while len(membership.assigned) < 2:
            await asyncio.sleep(0.05)
            membership = await storage.groups.heartbeat(READERS, "other", owned=[])
    others = {place.shard for place in membership.assigned}
    for shard in range(4):
        await append(storage, b"again %d" % shard, shard=shard)
    await receiver.until(6)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    _, members, _ = await storage.groups.describe(READERS)

    assert len(others) == 2
    assert [member.member_id for member in members] == ["other"]
    delivered = {int(got.headers["millstream-shard"]) for got in receiver.requests[4:]}
    assert delivered == {0, 1, 2, 3} - others
    assert len(receiver.requests) == 6


async def test_blocked_record_is_passed_after_successful_resend(bench, storage, receiver, clock):
    await group_hook(bench, retry_delays_ms=(HOUR_MS,))
    await append(storage, b"bad", b"behind")
    receiver.behaviours = [respond_with(500)]
    source = await bench.group_source()
    await source.round()
    [delivery] = await bench.deliveries()

    await Requested(storage, ALLOW, clock=clock).resend(HOOK, delivery.event_id)
    clock.advance(5 * SECOND_MS)
    await source.round()

    assert receiver.bodies == [b"bad", b"bad", b"behind"]
    assert await committed(storage) == {0: 2}


async def test_missing_shard_delivers_nothing(bench, storage, receiver):
    """The source failed, and no shard of the group was served for five seconds."""
    await group_hook(bench)
    stream = await storage.catalog.stream(CLICKS)
    mine = MemberGeneration(READERS, "webhook.hook")
    source = ShardSource(
        endpoint=await bench.endpoint(),
        storage=storage,
        membership=mine,
        stream=stream,
        shard=7,
        start=None,
    )

    wait_ms = await source.step()

    assert wait_ms == limits.WEBHOOK_SOURCE_RETRY_MS
    assert not source.is_done
    assert receiver.requests == []


async def test_webhook_of_paused_group_delivers_nothing(bench, storage, receiver):
    await group_hook(bench)
    source = await bench.group_source()
    await storage.groups.pause(READERS, paused=True)
    await source.heartbeat()
    await append(storage, b"0")

    await source.round()
    paused = list(receiver.bodies)
    await storage.groups.pause(READERS, paused=False)
    await source.heartbeat()
    await source.round()

    assert (paused, receiver.bodies) == ([], [b"0"])


# ── Matches ──


async def test_only_matching_records_are_posted(bench, storage, receiver):
    match = [{"filter": {"body": {"total": [{"numeric": [">", 10]}]}}}, {"where": "body.vip"}]
    await group_hook(bench, match=match)
    bodies = [b'{"total": 5}', b'{"total": 50}', b"text", b'{"vip": true}', b'{"total": 1}']
    await append(storage, *bodies)

    await (await bench.group_source()).round()

    assert receiver.bodies == [bodies[1], bodies[3]]
    assert await committed(storage) == {0: 5}


async def test_lag_falls_although_webhook_posts_nothing(bench, storage, receiver):
    await group_hook(bench, match={"subject": "order.*"})
    await append(storage, *(b"%d" % number for number in range(limits.WEBHOOK_READ_RECORDS + 3)))

    await (await bench.group_source()).round()

    assert receiver.bodies == []
    assert await committed(storage) == {0: limits.WEBHOOK_READ_RECORDS + 3}


async def test_records_before_failing_match_are_committed(bench, storage, receiver):
    await group_hook(bench, match={"filter": {"body": {"n": [{"exists": True}]}}})
    receiver.behaviours = [respond_with(500)]
    await append(storage, b"0", b"1", b'{"n": 2}', b"3")

    await (await bench.group_source()).round()

    assert await committed(storage) == {0: 2}


@pytest.mark.parametrize(
    ("source", "match", "pointer"),
    [
        ("queue:orders", {"subject": "order.*"}, "/match"),
        ("group:readers", {"subject": "a..b"}, "/match/subject"),
        ("group:readers", [{}, {"where": "total >"}], "/match/1/where"),
        ("group:readers", "order.*", "/match"),
    ],
)
async def test_match_that_cannot_hold_is_refused(bench, storage, source, match, pointer):
    await group_hook(bench)

    with pytest.raises(ValidationFailed) as refused:
        await bench.hook(source, match=match)

    assert [fault.pointer for fault in refused.value.faults] == [pointer]
