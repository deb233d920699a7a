"""Promotions: planned ones lose nothing, and those after a loss say what they could not do."""

import asyncio
from functools import partial

import pytest

from consumers.mirrors.runner import MirrorRunner
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain.names import MirrorName
from tests.conditions import eventually
from tests.contract.mirrors.conftest import ALLOW, QUICK, append, numbers_by_key


async def _promote(client, mirror: str, **fields) -> dict[str, object]:
    answer = await client.post(f"/v1/mirrors/{mirror}/promotion", json=fields)
    return dict(answer.raise_for_status().json())


async def _write_until_fenced(client, stream: str) -> int:
    """Append numbered records until the stream is read-only; return how many were accepted."""
    number = 0
    while True:
        records = [{"data": str(number), "key": f"k{number % 5}"}]
        path = f"/v1/streams/{stream}/records"
        [outcome] = (await client.post(path, json={"records": records})).json()["records"]
        if outcome.get("error"):
            assert outcome["error"]["code"] == "fence_mismatch"
            return number
        number += 1


async def _numbers(storage, stream: str) -> list[int]:
    by_key = await numbers_by_key(storage, stream)
    assert all(numbers == sorted(numbers) for key, numbers in by_key.items() if key)
    return sorted(number for numbers in by_key.values() for number in numbers)


async def test_planned_promotion_loses_nothing(
    origin, copy, copy_storage, mirrors, put_mirror, stream_name
):
    """No background process runs: the promotion copies what is left by itself."""
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 3})
    await append(origin, stream_name, range(0))
    await put_mirror(stream_name)
    writing = asyncio.create_task(_write_until_fenced(origin, stream_name))
    await eventually(partial(_has_records, origin, stream_name), True)

    promoted = await _promote(copy, stream_name)
    accepted = await writing

    assert (promoted["origin"], promoted["promoted_at"] is None) == ("fenced", False)
    assert accepted > 0
    assert await _numbers(copy_storage, stream_name) == list(range(accepted))
    assert await _write(copy, stream_name) == ""


async def _has_records(client, stream: str) -> bool:
    read = (await client.get(f"/v1/streams/{stream}/records")).json()
    return len(read["records"]) > 20


async def _write(client, stream: str) -> str:
    """Append a record; return the code of the error, or nothing."""
    body = {"records": [{"data": "1000000"}]}
    [outcome] = (await client.post(f"/v1/streams/{stream}/records", json=body)).json()["records"]
    return str((outcome.get("error") or {}).get("code", ""))


async def test_promotion_goes_on_when_the_origin_is_lost(
    origin, copy, copy_storage, pullers, link, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await eventually(partial(_numbers, copy_storage, stream_name), list(range(10)))
    link.cut()

    lost = await _promote(copy, stream_name)
    link.is_cut = False
    again = await _promote(copy, stream_name)

    assert (lost["origin"], lost["promoted_at"] is None) == ("unreachable", False)
    assert again == {**lost, "origin": "fenced"}
    assert await _write(origin, stream_name) == "fence_mismatch"


async def test_promotion_waits_for_missing_records_unless_forced(
    origin, copy, pullers, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await copy.put(f"/v1/streams/{stream_name}", json={"record_bytes_max": 1024})
    record = {"data": "x" * 2_000}
    await origin.post(f"/v1/streams/{stream_name}/records", json={"records": [record]})
    await put_mirror(stream_name)

    early = await _promote(copy, stream_name, wait_seconds=0.2)
    shown = (await copy.get(f"/v1/mirrors/{stream_name}")).json()
    forced = await _promote(copy, stream_name, force=True)

    assert (early["origin"], early["promoted_at"]) == ("fenced", None)
    assert shown["promoted_at"] is None
    assert (forced["origin"], forced["promoted_at"] is None) == ("fenced", False)


async def test_promotion_leaves_the_origin_alone_if_wanted(
    origin, copy, mirrors, put_mirror, stream_name
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await put_mirror(stream_name)

    promoted = await _promote(copy, stream_name, fence=False)

    assert promoted["origin"] == "ignored"
    assert await _write(origin, stream_name) == ""


async def test_promotion_goes_on_when_the_origin_refuses(copy, mirrors, stream_name):
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    body = {"from": {"url": url}, "streams": [stream_name]}
    (await copy.put(f"/v1/mirrors/{stream_name}", json=body)).raise_for_status()

    promoted = await _promote(copy, stream_name)
    server.close()

    assert (promoted["origin"], promoted["promoted_at"] is None) == ("refused", False)


@pytest.fixture
async def origin_pullers(service, copy_storage):
    """The engines of the origin, whose mirrors are pulled."""
    async with open_storage(service[1]) as storage:
        running = asyncio.create_task(MirrorRunner(storage, ALLOW, times=QUICK).run())
        yield storage
        await end(running)


async def test_streams_move_there_and_back(
    origin, copy, copy_service, copy_storage, pullers, origin_pullers, put_mirror, stream_name
):
    """A mirror in the other direction writes what the promotion had fenced, and lifts that fence."""
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 2})
    await append(origin, stream_name, range(100))
    await put_mirror(stream_name)
    assert (await _promote(copy, stream_name))["origin"] == "fenced"
    await append(copy, stream_name, range(100, 200))
    back = {"from": {"url": copy_service[0]}, "streams": [stream_name]}
    (await origin.put(f"/v1/mirrors/{stream_name}", json=back)).raise_for_status()

    await eventually(partial(_numbers, origin_pullers, stream_name), list(range(200)))
    refused = await _write(origin, stream_name)
    await append(copy, stream_name, range(200, 250))
    returned = await _promote(origin, stream_name)
    await origin_pullers.mirrors.delete(MirrorName(stream_name))
    await append(origin, stream_name, range(250, 300))

    assert (refused, returned["origin"]) == ("fence_mismatch", "fenced")
    assert await _numbers(origin_pullers, stream_name) == list(range(300))
    assert await _numbers(copy_storage, stream_name) == list(range(250))
    assert await _write(copy, stream_name) == "fence_mismatch"
