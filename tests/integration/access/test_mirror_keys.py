"""Mirrors read their origin with what their key allows, and are refused what it does not."""

import pytest
from msgspec.structs import replace

from consumers.mirrors.origin import OriginClient, OriginFailed
from storage.domain.access.credentials import Rights
from storage.domain.access.egress import Egress
from storage.domain.access.permissions import Effect, Grant
from storage.domain.mirrors.mirror import MIRROR_FENCE, MirrorSpec
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec

pytestmark = pytest.mark.one_store

READER = Rights(grants=(Grant(Effect.ALLOW, ("stream:list", "stream:read"), ("cl*",)),))
WRITER = Rights(
    grants=(
        Grant(Effect.ALLOW, ("mirror:*",)),
        Grant(Effect.ALLOW, ("stream:put", "stream:manage"), ("eu.*",)),
        Grant(Effect.ALLOW, ("queue:send", "queue:manage"), ("eu.*",)),
    )
)


async def test_key_decides_what_a_mirror_reads(secured_service):
    spec = MirrorSpec(url=secured_service.url, streams=("*",))
    key = await secured_service.key(READER)

    async def names(secret: str) -> list[str]:
        client = OriginClient(replace(spec, key=secret), Egress.of(("127.0.0.1",)))
        try:
            return [stream["name"] async for stream in client.streams()]
        finally:
            await client.close()

    assert await names(key.token) == ["clicks"]
    for wrong in ("", "ms_wrong"):
        with pytest.raises(OriginFailed, match="401"):
            await names(wrong)


@pytest.mark.parametrize(("pattern", "status"), [("eu.*", 201), ("eu.orders", 201), ("*", 403)])
async def test_mirror_needs_permission_for_all_streams_it_writes(secured_service, pattern, status):
    """Permission to manage mirrors allowed writes to any stream of the namespace."""
    key = await secured_service.key(WRITER)
    config = {"from": {"url": "https://eu.example.com"}, "streams": [pattern], "groups": False}

    answer = await secured_service.request("PUT", "/v1/mirrors/eu", key, json=config)

    assert answer.status_code == status


@pytest.mark.parametrize(("actions", "status"), [((), 403), (("group:manage", "group:reset"), 201)])
async def test_mirror_of_groups_needs_permission_to_move_them(secured_service, actions, status):
    grants = (*WRITER.grants, Grant(Effect.ALLOW, actions)) if actions else WRITER.grants
    key = await secured_service.key(Rights(grants=grants))
    config = {"from": {"url": "https://eu.example.com"}, "streams": ["eu.*"]}

    answer = await secured_service.request("PUT", "/v1/mirrors/eu", key, json=config)

    assert answer.status_code == status


@pytest.mark.parametrize(("actions", "refusal"), [(("stream:manage",), None), ((), 403)])
async def test_key_decides_whether_a_mirror_makes_the_origin_read_only(
    secured_service, actions, refusal
):
    grants = (*READER.grants, Grant(Effect.ALLOW, actions)) if actions else READER.grants
    key = await secured_service.key(Rights(grants=grants))
    spec = MirrorSpec(url=secured_service.url, streams=("clicks",), key=key.token)
    client = OriginClient(spec, Egress.of(("127.0.0.1",)))

    status = None
    try:
        await client.fence("clicks", 0, MIRROR_FENCE)
    except OriginFailed as failed:
        status = failed.status
    finally:
        await client.close()

    [state] = await secured_service.storage.record_reader.shards(StreamName("clicks"))
    await secured_service.storage.streams.set_fence(StreamName("clicks"), 0, "")
    assert (status, state.fenced) == (refusal, refusal is None)


@pytest.mark.parametrize(("pattern", "status"), [("eu.*", 201), ("eu.work", 201), ("*", 403)])
async def test_mirror_needs_permission_for_all_queues_it_writes(secured_service, pattern, status):
    key = await secured_service.key(WRITER)
    config = {"from": {"url": "https://eu.example.com"}, "queues": [pattern]}

    answer = await secured_service.request("PUT", "/v1/mirrors/work", key, json=config)

    assert answer.status_code == status


@pytest.mark.parametrize(("actions", "refusal"), [(("queue:manage",), None), ((), 403)])
async def test_key_decides_what_a_mirror_reads_of_queues_and_fences(
    secured_service, actions, refusal
):
    queue = QueueName("mirrored")
    await secured_service.storage.catalog.put_queue(queue, QueueSpec())
    reading = Grant(Effect.ALLOW, ("queue:list", "queue:peek"), ("mir*",))
    grants = (reading, Grant(Effect.ALLOW, actions)) if actions else (reading,)
    key = await secured_service.key(Rights(grants=grants))
    spec = MirrorSpec(url=secured_service.url, queues=("*",), key=key.token)
    client = OriginClient(spec, Egress.of(("127.0.0.1",)))

    status = None
    try:
        names = [one["name"] async for one in client.queues()]
        changes = await client.changes(queue.name, "", partition=0, next_offset=0, wait_ms=0)
        page = await client.contents(queue.name, partition=0, after=-1, dead=False)
        with pytest.raises(OriginFailed, match=r"40[34]"):
            await client.contents("orders", partition=0, after=-1, dead=False)
        await client.fence_queue(queue.name, MIRROR_FENCE)
    except OriginFailed as failed:
        status = failed.status
    finally:
        await client.close()

    stats = await secured_service.storage.queues.stats(queue)
    await secured_service.storage.catalog.delete_queue(queue)
    assert names == ["mirrored"]
    assert (changes.complete, page.messages) == (False, ())
    assert (status, stats.fenced) == (refusal, refusal is None)
