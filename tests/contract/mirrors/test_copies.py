"""Records of one deployment reach another once and in order, whatever fails in between."""

import asyncio
import random
from functools import partial

import httpx
import pytest

from consumers.mirrors.origin import OriginClient, OriginFailed
from consumers.mirrors.runner import MirrorRunner
from storage.bootstrap import Storage, open_storage
from storage.concurrency.tasks import end
from storage.domain.access.egress import Egress
from storage.domain.errors import ProducerFenced, QuotaReached
from storage.domain.log.record_batch import Record
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.mirrors.progress import MIRROR_ORIGIN
from storage.domain.names import MirrorName, StreamName
from tests.conditions import eventually
from tests.contract.conftest import running_service
from tests.contract.mirrors.conftest import (
    ALLOW,
    QUICK,
    append,
    background_process,
    end_leases,
    environment_of,
    numbers_by_key,
    progress,
)

SEED = 82


def expected(count: int, keys: int = 5) -> dict[str, list[int]]:
    """Return the numbers of `append` by key; those without one have their order in a shard only."""
    by_key: dict[str, list[int]] = {}
    for number in range(count):
        by_key.setdefault(f"k{number % keys}" if number % keys else "", []).append(number)
    return by_key


def normalized(by_key: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return the numbers with those without a key sorted: they have no order across shards."""
    return {key: numbers if key else sorted(numbers) for key, numbers in by_key.items()}


async def copied(storage, stream):
    return normalized(await numbers_by_key(storage, stream))


async def test_stream_is_copied_with_definition_keys_and_headers(
    origin, copy, copy_storage, pullers, put_mirror, stream_name
):
    settings = {"shards": 3, "retention_seconds": 7200, "event_time_skew_seconds_max": 60}
    await origin.put(f"/v1/streams/{stream_name}", json=settings)
    record = {
        "data": {"total": 7},
        "key": "ann",
        "headers": {"source": "web"},
    }
    answer = await origin.post(f"/v1/streams/{stream_name}/records", json={"records": [record]})
    [appended] = answer.json()["records"]
    await put_mirror(stream_name)

    await eventually(
        lambda: progress(copy_storage, stream_name),
        [(shard, int(shard == appended["shard"]), False) for shard in range(3)],
    )

    made = (await copy.get(f"/v1/streams/{stream_name}")).json()
    records = (await copy.get(f"/v1/streams/{stream_name}/records")).json()["records"]
    origin_id = (await origin.get(f"/v1/streams/{stream_name}/shards")).json()["stream_id"]
    assert (made["shards"], made["retention_seconds"]) == (3, 7200)
    assert made["event_time_skew_seconds_max"] is None
    [shown] = records
    assert (shown["data"], shown["key"], shown["shard"]) == ({"total": 7}, "ann", appended["shard"])
    assert shown["headers"] == {
        "source": "web",
        MIRROR_ORIGIN: f"{origin_id}/{appended['shard']}/0",
    }


async def test_records_are_added_once_when_the_link_is_cut(
    origin, copy_storage, pullers, link, put_mirror, stream_name
):
    """The link is cut in the middle of answers, and puller after puller takes over."""
    chance, count = random.Random(SEED), 6_000
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 2})
    await put_mirror(stream_name)

    for first in range(0, count, 1_000):
        await append(origin, stream_name, range(first, first + 1_000))
        connections = link.connections
        if chance.random() < 0.5:
            link.abort()
        else:
            await pullers.stop()
            pullers.start()
        await eventually(partial(_has_grown, link, connections), True)

    await eventually(lambda: copied(copy_storage, stream_name), expected(count))


async def _has_grown(link, connections: int) -> bool:
    return bool(link.connections > connections)


async def test_reshards_of_the_origin_are_followed(
    origin, copy_storage, pullers, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 1})
    await put_mirror(stream_name)
    steps = ({"split": {"shard": 0}}, {"merge": [1, 2]}, {"shards": 4})

    for nth, step in enumerate(steps):
        await append(origin, stream_name, range(nth * 100, nth * 100 + 100))
        reshard = await origin.post(f"/v1/streams/{stream_name}/reshard", json=step)
        reshard.raise_for_status()
    await append(origin, stream_name, range(300, 400))

    await eventually(lambda: copied(copy_storage, stream_name), expected(400))
    shards = (await origin.get(f"/v1/streams/{stream_name}/shards")).json()["items"]
    await eventually(
        partial(_ended, copy_storage, stream_name),
        [shard["index"] for shard in shards if not shard["open"]],
    )


async def _ended(storage: Storage, stream: str) -> list[int]:
    return [shard for shard, _, is_over in await progress(storage, stream) if is_over]


async def test_two_mirrors_of_one_name_do_not_loop(
    origin, copy, service, copy_service, copy_storage, pullers, put_mirror, stream_name
):
    """Each record is in both deployments once, wherever it was written."""
    for client in (origin, copy):
        await client.put(f"/v1/streams/{stream_name}", json={})
    await put_mirror(stream_name)
    back = {"from": {"url": copy_service[0]}, "streams": [stream_name]}
    (await origin.put(f"/v1/mirrors/{stream_name}", json=back)).raise_for_status()
    await append(origin, stream_name, range(100))
    await append(copy, stream_name, range(100, 150))

    async with open_storage(service[1]) as origin_storage:
        running = asyncio.create_task(MirrorRunner(origin_storage, ALLOW, times=QUICK).run())
        try:
            for storage, own, other in (
                (copy_storage, 50, 100),
                (origin_storage, 100, 50),
            ):
                read = partial(_copied_and_skipped, storage, stream_name)
                await eventually(read, [(other, own)])
        finally:
            await end(running)
            await origin_storage.mirrors.delete(MirrorName(stream_name))
        for storage in (copy_storage, origin_storage):
            by_key = await numbers_by_key(storage, stream_name)
            numbers = [number for numbers in by_key.values() for number in numbers]
            assert sorted(numbers) == list(range(150))


async def _copied_and_skipped(storage, stream: str) -> list[tuple[int, int]]:
    stored = await storage.mirrors.get(MirrorName(stream))
    status = await storage.mirrors.status(stored)
    return [(one.copied, one.skipped) for one in status.shards]


async def test_promoted_mirror_copies_nothing_more(
    origin, copy, copy_storage, pullers, put_mirror, stream_name
):
    """A puller that does not know of the promotion is fenced."""
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await eventually(lambda: copied(copy_storage, stream_name), expected(10))
    mirror = await copy_storage.mirrors.get(MirrorName(stream_name))
    [shard] = (await copy_storage.mirrors.status(mirror)).shards

    path, apart = f"/v1/mirrors/{stream_name}/promotion", {"fence": False}
    promoted = await copy.post(path, json=apart)
    again = await copy.post(path, json=apart)
    await append(origin, stream_name, range(10, 20))

    assert promoted.json()["promoted_at"] is not None
    assert again.json() == promoted.json()
    producer = mirror.producer_of(shard.origin_id, 0)
    with pytest.raises(ProducerFenced):
        await copy_storage.streams.append_idempotent(
            StreamName(stream_name), producer, [10], [Record(b"10")]
        )
    assert await copied(copy_storage, stream_name) == expected(10)


async def test_paused_mirror_continues_where_it_was(
    origin, copy, copy_storage, pullers, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await eventually(lambda: progress(copy_storage, stream_name), [(0, 10, False)])

    await copy.put(f"/v1/mirrors/{stream_name}/pause")
    await append(origin, stream_name, range(10, 20))
    await copy.delete(f"/v1/mirrors/{stream_name}/pause")

    await eventually(lambda: progress(copy_storage, stream_name), [(0, 20, False)])
    assert await copied(copy_storage, stream_name) == expected(20)


async def test_copy_is_made_again_when_it_was_deleted(
    origin, copy, copy_storage, pullers, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await eventually(lambda: copied(copy_storage, stream_name), expected(10))

    (await copy.delete(f"/v1/streams/{stream_name}")).raise_for_status()

    await eventually(lambda: copied(copy_storage, stream_name), expected(10))


async def test_later_changes_of_definitions_are_followed_if_wanted(
    origin, copy, copy_storage, pullers, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={"retention_seconds": 3600})
    await put_mirror(stream_name, follow_definitions=True)
    retention = partial(_retention, copy, stream_name)
    await eventually(retention, 3600)

    await origin.put(f"/v1/streams/{stream_name}", json={"retention_seconds": 7200})

    await eventually(retention, 7200)


async def _retention(client, stream: str) -> int:
    shown = (await client.get(f"/v1/streams/{stream}")).json()
    return int(shown.get("retention_seconds", 0))


async def test_failures_are_shown_and_the_lag_grows_meanwhile(
    origin, copy, copy_storage, pullers, link, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await eventually(lambda: progress(copy_storage, stream_name), [(0, 10, False)])

    link.cut()
    await eventually(lambda: _has_failures(copy, stream_name), True)
    stats = (await copy.get(f"/v1/mirrors/{stream_name}/stats")).json()
    link.is_cut = False
    await append(origin, stream_name, range(10, 20))

    assert "cannot be reached" in stats["failures"][0]
    assert stats["lag_seconds"] > 0
    await eventually(lambda: progress(copy_storage, stream_name), [(0, 20, False)])
    await eventually(lambda: _has_failures(copy, stream_name), False)


async def _has_failures(client, mirror: str) -> bool:
    return bool((await client.get(f"/v1/mirrors/{mirror}/stats")).json()["failures"])


async def test_address_that_is_not_allowed_is_never_reached(link, stream_name):
    """A name that resolves to an inner address is refused when it is connected to."""
    spec = MirrorSpec(url=link.url.replace("127.0.0.1", "eu.example.com"), streams=("*",))

    async def resolve(_: str, __: int) -> list[str]:
        return ["127.0.0.1"]

    client = OriginClient(spec, Egress.of(()), resolve)

    with pytest.raises(OriginFailed, match="does not send requests to"):
        await client.shards(stream_name)
    assert link.connections == 0


async def test_answer_of_another_service_is_a_failure(stream_name):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spec = MirrorSpec(url=f"http://127.0.0.1:{port}", streams=("*",))
    client = OriginClient(spec, Egress.of(ALLOW))
    try:
        with pytest.raises(OriginFailed, match="not an answer of Millstream"):
            await client.shards(stream_name)
    finally:
        await client.close()
        server.close()


async def test_stream_that_cannot_be_created_does_not_keep_others_from_being_copied(
    origin, copy_storage, pullers, put_mirror, stream_name, monkeypatch
):
    put = copy_storage.catalog.put_stream

    async def refuse_first(name, spec, **options):
        if name.name == first:
            raise QuotaReached("The namespace has as many streams as it may have.")
        return await put(name, spec, **options)

    monkeypatch.setattr(copy_storage.catalog, "put_stream", refuse_first)
    first, second = f"{stream_name}-1", f"{stream_name}-2"
    for stream in (first, second):
        await origin.put(f"/v1/streams/{stream}", json={})
        await append(origin, stream, range(10))
    await put_mirror(stream_name, streams=[f"{stream_name}-*"])

    await eventually(lambda: copied(copy_storage, second), expected(10))
    await eventually(lambda: _names_failure(copy_storage, f"Stream '{first}': "), True)


async def _names_failure(storage, start: str) -> bool:
    [mirror] = await storage.mirrors.all()
    failures = (await storage.mirrors.status(mirror)).failures
    return any(failure.startswith(start) for failure in failures)


@pytest.mark.chaos
async def test_records_are_added_once_when_processes_are_killed(
    origin, service, copy_service, copy_storage, mirrors, link, put_mirror, stream_name
):
    """Background processes are killed while they copy, and then a process of the origin."""
    count = 20_000
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 3})
    await append(origin, stream_name, range(count))
    with running_service(environment_of(service[1])) as (url, api):
        port, link.port = link.port, httpx.URL(url).port
        await put_mirror(stream_name)
        for kills in range(1, 4):
            background = background_process(copy_service[1])
            await eventually(partial(_has_copied, copy_storage, kills * 3_000), True)
            background.kill()
            background.wait()
            end_leases(copy_service[1].database_url)
        background = background_process(copy_service[1])
        await eventually(lambda: _has_copied(copy_storage, 12_000), True)
        api.kill()
        api.wait()
    link.port = port
    try:
        await eventually(lambda: copied(copy_storage, stream_name), expected(count), 60)
    finally:
        background.kill()
        background.wait()


async def _has_copied(storage, least: int) -> bool:
    [mirror] = await storage.mirrors.all()
    status = await storage.mirrors.status(mirror)
    return bool(sum(one.next_offset for one in status.shards) >= least)


async def test_topics_and_queues_of_routes_are_left_out(
    origin, copy, copy_storage, pullers, link, stream_name
):
    """Their patterns match, and the other stream is copied."""
    await origin.put(f"/v1/topics/{stream_name}", json={})
    route = {"target": {"url": "https://shop.example/hooks"}}
    answer = await origin.put(f"/v1/topics/{stream_name}/routes/crm", json=route)
    answer.raise_for_status()
    await origin.put(f"/v1/streams/{stream_name}-copies", json={})
    await origin.put(f"/v1/queues/{stream_name}-work", json={})
    patterns = [f"*{stream_name}*"]
    body = {"from": {"url": link.url}, "streams": patterns, "queues": patterns}
    (await copy.put(f"/v1/mirrors/{stream_name}", json=body)).raise_for_status()

    async def copied() -> tuple[set[str], set[str]]:
        stored = await copy_storage.mirrors.get(MirrorName(stream_name))
        status = await copy_storage.mirrors.status(stored)
        streams = {shard.stream for shard in status.shards}
        return streams, {queue.queue for queue in status.queues}

    await eventually(copied, ({f"{stream_name}-copies"}, {f"{stream_name}-work"}))
    assert (await copy.get(f"/v1/queues/route:{stream_name}.crm")).status_code == 404
    assert (await copy.get(f"/v1/topics/{stream_name}")).status_code == 404
