"""Subscriptions of the Python SDK over a WebSocket, also through a broken network."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from millstream_client import (
    AsyncMillstream,
    Conflict,
    ConnectionFailed,
    Gap,
    Millstream,
    NewRecord,
    NotFound,
    Record,
    Retries,
)
from tests.conditions import PATIENCE_S
from tests.contract.sdk.lossy_proxy import running_lossy_proxy


async def some(subscription, number):
    """Collect so many next items."""
    async with asyncio.timeout(PATIENCE_S):
        return [await anext(subscription) for _ in range(number)]


async def test_messages_arrive_as_they_are_sent(asynchronous, orders):
    orders.send(b"\xff")
    async with asynchronous.queue(orders.name).subscribe() as subscription:
        [first] = await some(subscription, 1)
        orders.send({"order": 7})
        [second] = await some(subscription, 1)
        await first.ack()
        await second.ack()

    assert (first.body, second.json()) == (b"\xff", {"order": 7})
    assert (orders.stats().acknowledged, orders.stats().in_flight) == (2, 0)


async def test_messages_are_settled_over_socket(asynchronous, orders):
    orders.send_many(["nack", "release", "reject", "extend"])
    async with asynchronous.queue(orders.name).subscribe() as subscription:
        by_text = {message.text: message for message in await some(subscription, 4)}
        await by_text["reject"].reject("never")
        await by_text["extend"].extend(100)
        await by_text["nack"].nack(delay_seconds=3_600)
        await by_text["release"].release()
        [again] = await some(subscription, 1)

    assert (again.text, again.receive_count) == ("release", 2)
    assert [letter.reason for letter in orders.dead_letters()] == ["never"]
    assert (orders.stats().delayed, orders.stats().in_flight) == (1, 0)


async def test_closing_subscription_releases_unsettled_messages(asynchronous, orders):
    orders.send_many(["a", "b"])
    async with asynchronous.queue(orders.name).subscribe() as subscription:
        await some(subscription, 1)

    for _ in range(200):
        if orders.stats().ready == 2:
            break
        await asyncio.sleep(0.01)
    assert (orders.stats().ready, orders.stats().in_flight) == (2, 0)


async def test_credit_is_renewed_as_messages_are_consumed(asynchronous, orders):
    """Never more than the credit is in transit, however many messages there are."""
    orders.send_many(str(number) for number in range(60))
    texts = []
    async with asynchronous.queue(orders.name).subscribe(messages=10) as subscription:
        for _ in range(60):
            [message] = await some(subscription, 1)
            texts.append(message.text)
            await message.ack()
            assert orders.stats().in_flight <= 10

    assert texts == [str(number) for number in range(60)]


async def test_records_start_at_oldest_latest_time_or_offsets(asynchronous, clicks):
    clicks.put_many(["a", "b"], key="x")
    between = clicks.put_many(["c"], key="x")
    since = next(record for record in clicks.read() if record.text == "c").arrival_time
    stream = asynchronous.stream(clicks.name)
    [at] = between
    fields = {
        "earliest": stream.subscribe("earliest"),
        "latest": stream.subscribe(),
        "time": stream.subscribe(since),
        "offsets": stream.subscribe(offsets={at.shard: at.offset}, shard=at.shard),
    }
    found = {}

    for name, subscription in fields.items():
        async with subscription:
            clicks.put(name, key="x")
            records: list[Record] = []
            while not records or records[-1].text != name:
                records += await some(subscription, 1)
            found[name] = [record.text for record in records]

    assert found["earliest"] == ["a", "b", "c", "earliest"]
    assert found["latest"] == ["latest"]
    assert found["time"][0] in ("a", "c")  # records of the same millisecond are included
    assert found["offsets"][0] == "c"


async def test_filter_omits_records(asynchronous, clicks):
    clicks.put_many([NewRecord("a", "ann"), NewRecord("b", "bea"), NewRecord("c", "ann")])

    subscription = asynchronous.stream(clicks.name).subscribe("earliest", filter={"keys": ["ann"]})
    async with subscription:
        records = await some(subscription, 2)

    assert [record.text for record in records] == ["a", "c"]


async def test_member_gets_only_records_of_its_filter(asynchronous, clicks):
    clicks.put_many(["1", "20", "3"], key="x")
    for name in ("reads", "pushes"):
        await asynchronous.group(f"{clicks.name}-{name}").create(clicks.name)
    match = {"filter": {"body": [{"numeric": [">", 10]}]}}
    reads = asynchronous.group(f"{clicks.name}-reads")
    pushes = asynchronous.group(f"{clicks.name}-pushes")

    async with reads.member("ann") as ann:
        batches = ann.batches(match=match, until_empty=True, wait_seconds=0)
        fetched = [record.text async for read in batches for record in read.records]
    async with pushes.subscribe(filter={"match": match}) as records:
        pushed = await anext(aiter(records))

    assert (fetched, pushed.text) == (["20"], "20")
    assert (await reads.lag()).records == 0


async def test_missing_offsets_are_reported(asynchronous, clicks):
    shard = clicks.put_many(["a", "b", "c"], key="x")[0].shard
    clicks.truncate(shard, 2)
    gaps: list[Gap] = []

    subscription = asynchronous.stream(clicks.name).subscribe(
        offsets={shard: 0}, shard=shard, on_gap=gaps.append
    )
    async with subscription:
        [record] = await some(subscription, 1)

    assert record.text == "c"
    assert [(gap.shard, gap.first, gap.next, gap.reason) for gap in gaps] == [
        (shard, 0, 2, "expired")
    ]


async def test_reading_continues_through_reshard(asynchronous, clicks):
    clicks.put_many([NewRecord("before", str(number)) for number in range(8)])
    stream = asynchronous.stream(clicks.name)
    async with stream.subscribe("earliest") as subscription:
        first = await some(subscription, 8)
        clicks.reshard(4)
        clicks.put_many([NewRecord("after", str(number)) for number in range(8)])
        then = await some(subscription, 8)

    assert [record.text for record in [*first, *then]] == ["before"] * 8 + ["after"] * 8
    assert {record.shard for record in then} != {record.shard for record in first}


async def test_start_time_selects_shards_open_then(asynchronous, clicks):
    """Shards that ended before are skipped; a shard split since is read to its end first."""
    clicks.put_many([NewRecord("old", str(number)) for number in range(8)])
    clicks.reshard(split=0)
    await asyncio.sleep(0.01)
    clicks.put_many([NewRecord("new", str(number)) for number in range(8)])
    since = min(record.arrival_time for record in clicks.read() if record.text == "new")
    clicks.reshard(merge=(2, 3))
    clicks.put_many([NewRecord("newest", str(number)) for number in range(8)])

    async with asynchronous.stream(clicks.name).subscribe(since) as subscription:
        records = await some(subscription, 16)
    read = [record.text async for record in asynchronous.stream(clicks.name).read(since)]

    by_key: dict[str, list[str]] = {}
    for record in records:
        by_key.setdefault(record.key, []).append(record.text)
    assert list(by_key.values()) == [["new", "newest"]] * 8
    assert sorted(read) == ["new"] * 8 + ["newest"] * 8


async def test_group_members_share_stream_and_commit(asynchronous, millstream, clicks):
    group = millstream.group(clicks.name)
    group.create(clicks.name)
    clicks.put_many([str(number) for number in range(10)], key="one")

    async with asynchronous.group(clicks.name).subscribe() as subscription:
        records = await some(subscription, 10)
        await subscription.commit(records[3])

    async with asynchronous.group(clicks.name).subscribe() as subscription:
        [next_one] = await some(subscription, 1)

    assert [record.text for record in records] == [str(number) for number in range(10)]
    assert next_one.text == "4"


async def test_commit_for_shard_of_another_member_is_rejected(asynchronous, clicks):
    """Two shards, two members: each releases one, and neither may commit the other's."""
    group = asynchronous.group(clicks.name)
    await group.create(clicks.name, session_timeout_seconds=3, revoke_timeout_seconds=3)
    for shard in (0, 1):
        clicks.put_to_shard(shard, ["a"])
    async with group.subscribe() as first:
        records = await some(first, 2)
        for record in records:
            await first.commit(record)
        async with group.subscribe() as second:
            for _ in range(500):
                owners = {shard.member for shard in (await group.details()).shards}
                if len(owners - {None}) == 2:
                    break
                await asyncio.sleep(0.02)
            for shard in (0, 1):
                clicks.put_to_shard(shard, ["b"])
            [own] = await some(second, 1)
            [others] = [record for record in records if record.shard != own.shard]
            await second.commit(own)
            with pytest.raises(Conflict) as refused:
                await second.commit(others)

    assert own.text == "b"
    assert refused.value.code == "stale_generation"


async def test_broken_connection_resumes_without_gap(service_url, clicks):
    with running_lossy_proxy(service_url) as proxy:
        client = AsyncMillstream(proxy.url)
        async with client, client.stream(clicks.name).subscribe(messages=20) as subscription:
            records: list[Record] = []
            for number in range(100):
                clicks.put(str(number), key="one")
                if number % 25 == 20:
                    proxy.cut()
            while len(records) < 100:
                records += await some(subscription, 1)
                if len(records) in (30, 70):
                    proxy.cut()

    assert [record.text for record in records] == [str(number) for number in range(100)]


async def test_messages_survive_broken_connection(service_url, orders):
    """Settlements in transit and the credit survive too."""
    done: set[str] = set()
    with running_lossy_proxy(service_url) as proxy:
        client = AsyncMillstream(proxy.url)
        async with client, client.queue(orders.name).subscribe(messages=10) as subscription:
            orders.send_many(str(number) for number in range(60))
            while len(done) < 60:
                [message] = await some(subscription, 1)
                done.add(message.text)
                if len(done) % 20 == 10:
                    proxy.cut()
                await message.ack()

    assert (orders.stats().acknowledged, orders.stats().in_flight) == (60, 0)


async def test_subscribing_to_unknown_source_is_rejected(asynchronous, name):
    with pytest.raises(NotFound) as missing:
        async with asynchronous.queue(name).subscribe():
            pass

    assert missing.value.code == "queue_not_found"


async def test_source_is_named_by_kind(asynchronous, orders, clicks):
    clicks.put("hello")
    async with asynchronous.subscribe(f"stream:{clicks.name}", start="earliest") as subscription:
        [record] = await some(subscription, 1)
    async with asynchronous.subscribe(f"queue:{orders.name}"):
        pass

    assert record.text == "hello"
    with pytest.raises(ValueError, match="must start with"):
        asynchronous.subscribe("orders")


async def test_deleting_queue_ends_its_subscription(asynchronous, orders):
    async with asynchronous.queue(orders.name).subscribe() as subscription:
        orders.delete()
        with pytest.raises(NotFound):
            await some(subscription, 1)


async def test_unreachable_service_is_reported(service_url):
    with running_lossy_proxy(service_url) as gone:
        url = gone.url
    async with AsyncMillstream(url, retries=Retries(seconds=0.2, first_pause_s=0.05)) as client:
        with pytest.raises(ConnectionFailed):
            async with client.queue("orders").subscribe():
                pass


def test_queue_subscription_works_without_event_loop(millstream, orders):
    orders.send("hello")
    with orders.subscribe() as subscription:
        message = next(subscription)
        message.ack()

    assert message.text == "hello"
    assert orders.stats().acknowledged == 1


async def test_iteration_ends_when_subscription_is_closed(asynchronous, clicks):
    clicks.put("hello")
    texts = []
    async with asynchronous.stream(clicks.name).subscribe("earliest") as subscription:
        async for record in subscription:
            texts.append(record.text)
            closing = asyncio.create_task(close_soon(subscription))
        await closing

    assert texts == ["hello"]


async def close_soon(subscription):
    await asyncio.sleep(0.05)
    await subscription.aclose()


def test_sync_iteration_ends_when_closed_by_another_thread(clicks):
    clicks.put("hello")
    texts = []
    with clicks.subscribe("earliest") as subscription:
        for record in subscription:
            texts.append(record.text)
            threading.Timer(0.05, subscription.close).start()

    assert texts == ["hello"]


def test_stream_subscription_works_without_event_loop(service_url, clicks):
    texts = []

    def put():
        for text in ("a", "b", "c"):
            clicks.put(text, key="x")

    with Millstream(service_url) as client, client.stream(clicks.name).subscribe() as records:
        thread = threading.Thread(target=put)
        thread.start()
        for record in records:
            texts.append(record.text)
            assert record.arrival_time <= datetime.now(UTC).replace(year=9999)
            if len(texts) == 3:
                break
        thread.join()

    assert texts == ["a", "b", "c"]
