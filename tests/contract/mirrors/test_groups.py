"""Consumer groups of one deployment are where they were when they go on in another."""

from functools import partial

import pytest

from storage.domain.names import GroupName, MirrorName, StreamName
from tests.conditions import eventually
from tests.contract.mirrors.conftest import append, numbers_by_key


async def _put_group(client, group: str, stream: str, **fields) -> None:
    answer = await client.put(f"/v1/groups/{group}", json={"stream": stream, **fields})
    answer.raise_for_status()


async def _read(client, group: str, member: str = "ann", limit: int = 100) -> list[int]:
    """Read as a member, and commit what was read."""
    query = {"member": member, "limit": limit}
    answer = (await client.get(f"/v1/groups/{group}/records", params=query)).raise_for_status()
    read = answer.json()
    body = {"token": read["token"]}
    (await client.post(f"/v1/groups/{group}/commit", json=body)).raise_for_status()
    return [int(one["data"]) for one in read["records"]]


async def _read_all(client, group: str, member: str) -> list[int]:
    numbers: list[int] = []
    while some := await _read(client, group, member, 1000):
        numbers += some
    return numbers


async def _states(client, mirror: str) -> dict[str, str]:
    stats = (await client.get(f"/v1/mirrors/{mirror}/stats")).json()
    return {one["group"]: one["state"] for one in stats["groups"]}


async def _committed(client, group: str) -> dict[int, int | None]:
    answer = await client.get(f"/v1/groups/{group}")
    if answer.status_code == 404:
        return {}
    return {one["shard"]: one["committed"] for one in answer.json()["shards"]}


@pytest.fixture
async def group(stream_name, origin, copy):
    """The name of a group, which is deleted at the end."""
    yield f"g{stream_name}"
    for client in (origin, copy):
        await client.delete(f"/v1/groups/g{stream_name}")


async def test_group_goes_on_where_it_was(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    """Nothing that was not committed is skipped, and here nothing is read again."""
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 2})
    await append(origin, stream_name, range(50))
    await _put_group(origin, group, stream_name, session_timeout_seconds=12, start="latest")
    await put_mirror(stream_name)
    await append(origin, stream_name, range(50, 100))
    before = await _read_all(origin, group, "ann")

    await eventually(partial(_numbers, copy_storage, stream_name), 100)
    await eventually(partial(_is_at_the_tips, copy, copy_storage, group, stream_name), True)
    shown = (await copy.get(f"/v1/groups/{group}")).json()
    await append(origin, stream_name, range(100, 120))
    await eventually(partial(_numbers, copy_storage, stream_name), 120)
    promoted = await copy.post(f"/v1/mirrors/{stream_name}/promotion")

    assert promoted.status_code == 200
    assert (shown["session_timeout_seconds"], shown["start"], shown["kind"]) == (
        *(12, "latest", "ordered"),
    )
    assert shown["members"] == []
    assert sorted(before) == list(range(50, 100))
    assert sorted(await _read_all(copy, group, "bob")) == list(range(100, 120))


async def _numbers(storage, stream: str) -> int:
    return sum(len(numbers) for numbers in (await numbers_by_key(storage, stream)).values())


async def _is_at_the_tips(client, storage, group: str, stream: str) -> bool:
    states = await storage.record_reader.shards(StreamName(stream))
    tips = {one.shard.index: one.next for one in states}
    return await _committed(client, group) == tips and sum(tips.values()) > 0


async def test_group_follows_across_reshards_and_reads_each_unread_record(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    await origin.put(f"/v1/streams/{stream_name}", json={"shards": 1})
    await _put_group(origin, group, stream_name)
    await put_mirror(stream_name)
    read: list[int] = []
    for nth, step in enumerate(({"split": {"shard": 0}}, {"shards": 4}, {"shards": 1})):
        await append(origin, stream_name, range(nth * 100, nth * 100 + 100))
        read += await _read(origin, group, limit=70)
        (await origin.post(f"/v1/streams/{stream_name}/reshard", json=step)).raise_for_status()
        if nth == 1:
            await eventually(partial(_numbers, copy_storage, stream_name), 200)
            body = {"shards": 3}
            made = await copy.post(f"/v1/streams/{stream_name}/reshard", json=body)
            made.raise_for_status()
    await append(origin, stream_name, range(300, 400))
    await eventually(partial(_numbers, copy_storage, stream_name), 400)
    await eventually(partial(_states, copy, stream_name), {group: "followed"})

    await copy.post(f"/v1/mirrors/{stream_name}/promotion")
    again = await _read_all(copy, group, "bob")

    assert set(range(400)) - set(again) <= set(read)
    assert len(again) == len(set(again))


async def test_group_in_use_is_left_alone(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await _put_group(origin, group, stream_name)
    await put_mirror(stream_name)
    await _read(origin, group)
    await eventually(partial(_offset, copy, group), 10)

    joined = await copy.post(f"/v1/groups/{group}/members", json={"member": "bob"})
    joined.raise_for_status()
    await append(origin, stream_name, range(10, 20))
    await _read(origin, group)

    await eventually(partial(_states, copy, stream_name), {group: "in_use"})
    await eventually(partial(_numbers, copy_storage, stream_name), 20)
    assert await _committed(copy, group) == {0: 10}


async def test_simple_group_that_commits_here_is_left_alone(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await _put_group(origin, group, stream_name, kind="simple")
    await _commit_simple(origin, group, 4)
    await put_mirror(stream_name)
    await eventually(partial(_states, copy, stream_name), {group: "followed"})
    await eventually(partial(_numbers, copy_storage, stream_name), 10)

    await _commit_simple(copy, group, 9)
    await _commit_simple(origin, group, 10)

    await eventually(partial(_states, copy, stream_name), {group: "in_use"})
    assert await _committed(copy, group) == {0: 9}


async def _offset(client, group: str) -> int:
    return (await _committed(client, group)).get(0) or 0


async def _commit_simple(client, group: str, offset: int) -> None:
    body = {"offsets": [{"shard": 0, "offset": offset}]}
    answer = await client.post(f"/v1/groups/{group}/commit", json=body)
    answer.raise_for_status()


async def test_group_that_the_mirror_did_not_create_is_named_and_left_alone(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    for client in (origin, copy):
        await client.put(f"/v1/streams/{stream_name}", json={})
        await _put_group(client, group, stream_name)
    await append(origin, stream_name, range(10))
    await put_mirror(stream_name)
    await _read(origin, group)

    await eventually(partial(_states, copy, stream_name), {group: "foreign"})
    await eventually(partial(_numbers, copy_storage, stream_name), 10)
    assert await _committed(copy, group) == {0: None}

    (await copy.delete(f"/v1/groups/{group}")).raise_for_status()
    await eventually(partial(_offset, copy, group), 10)


async def test_group_is_never_moved_back_or_after_the_promotion(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await append(origin, stream_name, range(10))
    await _put_group(origin, group, stream_name)
    await put_mirror(stream_name)
    await _read(origin, group)
    await eventually(partial(_offset, copy, group), 10)
    name = GroupName(group)
    mirror = await copy_storage.mirrors.get(MirrorName(stream_name))
    stored = await copy_storage.groups.get(name)

    await copy_storage.groups.positions.advance(stored, {0: 3})
    await pullers.stop()
    await copy.post(f"/v1/mirrors/{stream_name}/promotion", json={"fence": False})
    await append(origin, stream_name, range(10, 20))
    await _read(origin, group)
    pullers.start()

    assert await _committed(copy, group) == {0: 10}
    [known] = (await copy_storage.mirrors.status(mirror)).groups
    with pytest.raises(Exception, match="promoted"):
        await copy_storage.mirrors.report_groups(mirror, [known])


async def test_group_is_followed_by_the_next_puller(
    origin, copy, copy_storage, pullers, put_mirror, stream_name, group
):
    """The offset table is stored: a group that was behind is translated by another process."""
    await origin.put(f"/v1/streams/{stream_name}", json={})
    await _put_group(origin, group, stream_name)
    await put_mirror(stream_name)
    for first in range(0, 6_000, 1_500):
        await append(origin, stream_name, range(first, first + 1_500))
        await eventually(partial(_numbers, copy_storage, stream_name), first + 1_500)
    await pullers.stop()

    for _ in range(4):
        await _read(origin, group, limit=1000)
    pullers.start()

    await eventually(partial(_is_between, copy, group, 2_000, 4_000), True)


async def _is_between(client, group: str, least: int, most: int) -> bool:
    committed = await _committed(client, group)
    return least <= (committed.get(0) or 0) <= most
