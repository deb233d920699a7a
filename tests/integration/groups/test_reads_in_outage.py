"""Members read on and commit in an outage of Postgres, by the assignment that was read last."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest
import redis

from consumers.subscriptions.group_membership import Changes, OrderedGroupMember
from storage.bootstrap import Storage, open_storage
from storage.domain.errors import MemberUnknown, StaleGeneration, StorageUnavailable
from storage.domain.groups.group import GroupOffset, GroupSpec, ResetSpec, ResetTo
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName
from storage.domain.streams.stream import StreamSpec
from storage.embedded.postgres import PostgresServer
from storage.embedded.processes import stop
from storage.embedded.servers import start
from storage.postgres.migrate import migrate
from storage.redis.keys import group_offsets_key
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.databases import cut_off, nobody_connects
from tests.folders import quick_folder
from tests.group_faults import FormerRelease
from tests.integration.fault_proxy import running_database_proxy
from tests.integration.groups.group_reads import (
    CLICKS,
    NEVER_AWAY,
    READERS,
    SESSION_MS,
    commits,
    data,
    fill,
    shards_of,
)
from tests.websocket_client import Frame, running_server

pytestmark = pytest.mark.one_store

SOCKETS = GroupName("sockets")


def is_vouched(storage: Storage) -> Callable[[], Awaitable[bool]]:
    async def read() -> bool:
        return storage.health.is_postgres_away

    return read


@pytest.fixture
def open_process(redis_url: str, database_url: str, clock):
    """Open storage as one process of the deployment does."""

    def opened(url: str = database_url):
        settings = StorageSettings(redis_url=redis_url, database_url=url)
        return open_storage(settings, clock=clock, limits=NEVER_AWAY)

    return opened


async def read(storage: Storage, member: str = "a", after=None, generation: int = 0):
    """Read as a member, on from an earlier read if there is one."""
    return await storage.groups.fetcher.fetch(
        READERS,
        member,
        positions=None if after is None else after.positions,
        generation=generation if after is None else after.membership.generation,
    )


async def append(storage: Storage, *numbers: int) -> None:
    for number in numbers:
        await storage.streams.append_to_shard(CLICKS, number % 2, [Record(b"%d" % number)])


class Reader:
    """A member that reads over HTTP, and reads on before it commits."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.token = ""
        self.numbers: list[int] = []

    async def read(self) -> None:
        after = {"after": self.token} if self.token else {}
        response = await self._http.get(
            "/v1/groups/readers/records", params={"member": "a", **after}
        )
        assert response.status_code == 200, response.text
        self.token = response.json()["token"]
        self.numbers += [int(record["data"]) for record in response.json()["records"]]

    async def commit(self) -> httpx.Response:
        return await self._http.post("/v1/groups/readers/commit", json={"token": self.token})


async def rows_of(former: FormerRelease) -> list[int]:
    return [at or 0 for at in former.committed()]


def numbers(records: list[Frame]) -> list[int]:
    return [int(record["data"]) for record in records]


def of_each_shard(found: list[int]) -> tuple[list[int], list[int]]:
    return [one for one in found if one % 2 == 0], [one for one in found if one % 2]


async def test_members_read_on_while_postgres_is_stopped(redis_url):
    with quick_folder("outage") as folder:
        server = PostgresServer(folder, fsync=False)
        server.prepare()
        process = start(server)
        try:
            server.wait_ready(alive=lambda: process.poll() is None)
            migrate(server.url)
            settings = StorageSettings(redis_url=redis_url, database_url=server.url)
            async with open_storage(settings) as storage:
                await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
                for name in (READERS, SOCKETS):
                    await storage.groups.put(name, GroupSpec(stream="clicks"))
                async with (
                    running_server(storage, Limits(push_tick_ms=50)) as service,
                    httpx.AsyncClient(base_url=service.url, timeout=30) as http,
                    service.socket() as socket,
                ):
                    reader = Reader(http)
                    await append(storage, *range(4))
                    await reader.read()
                    assert (await reader.commit()).status_code == 200
                    await socket.subscribe("s", "stream:clicks", group="sockets")
                    before = await socket.records(4)

                    stop(process, server.stop_signal)
                    await eventually(is_vouched(storage), True)
                    for first in range(4, 16, 4):
                        await append(storage, *range(first, first + 4))
                        await reader.read()
                    in_outage = await socket.records(12)

                    every_number = [*range(0, 16, 2)], [*range(1, 16, 2)]
                    assert of_each_shard(reader.numbers) == every_number
                    assert of_each_shard(numbers(before + in_outage)) == every_number
                    assert (await reader.commit()).json()["failed"] == 0
                    ack = await socket.request("ack", sub="s", shard=0, up_to=8)
                    assert ack["type"] == "ok"
                    beat = await http.post("/v1/groups/readers/members/a/heartbeat", json={})
                    assert beat.status_code == 200
                    assert [one["committed"] for one in beat.json()["assigned"]] == [8, 8]
                    for refused in (
                        await http.get("/v1/groups/readers/records", params={"member": "a"}),
                        await http.get("/v1/groups/readers/records", params={"member": "b"}),
                        await http.post("/v1/groups/readers/members", json={}),
                        await http.delete("/v1/groups/readers/members/a"),
                    ):
                        assert refused.status_code == 503, refused.text
                        assert int(refused.headers["retry-after"]) >= 1

                    process = start(server)
                    server.wait_ready(alive=lambda: process.poll() is None)
                    await eventually(is_vouched(storage), False)
                    for name, copied in ((READERS, [8, 8]), (SOCKETS, [8, 0])):
                        former = FormerRelease(server.url, name)
                        await eventually(partial(rows_of, former), copied, within_s=15)
                    await append(storage, 16, 17)
                    await reader.read()
                    assert reader.numbers[16:] == [16, 17]
                    assert sorted(numbers(await socket.records(2))) == [16, 17]
        finally:
            stop(process, server.stop_signal)


async def test_uncommitted_records_are_read_again_in_outage(storage, groups, database_url):
    await fill(storage)
    first = await read(storage)
    await groups.commit(READERS, commits(first)[:2])
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        again = await read(storage, generation=first.membership.generation)

    assert data(again) == [b"2.0", b"2.1", b"2.2", b"3.0", b"3.1", b"3.2"]


async def test_heartbeat_in_outage_changes_nothing(groups, storage, database_url):
    member = OrderedGroupMember(groups, READERS, "a")
    await member.beat()
    generation = member.generation
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        changes = await member.beat()

    assert changes == Changes()
    assert (member.generation, [*member.owned]) == (generation, [0, 1, 2, 3])


async def test_reset_before_outage_is_read_from_its_position(storage, groups, database_url):
    await fill(storage)
    first = await read(storage)
    await groups.commit(READERS, commits(first))
    await groups.positions.reset(READERS, ResetSpec(to=ResetTo.EARLIEST))
    reset = await groups.heartbeat(READERS, "a")
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        again = await read(storage, generation=reset.generation)

    assert len(data(again)) == 12


async def test_unknown_member_and_other_instance_do_not_read(storage, groups, database_url):
    await fill(storage)
    former = await read(storage)
    await groups.join(READERS, member_id="a")
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        with pytest.raises(StorageUnavailable):
            await read(storage, "b")
        with pytest.raises(StorageUnavailable):
            await read(storage, after=former)


async def test_member_does_not_read_shard_that_another_one_got(
    open_process, storage, groups, database_url, clock
):
    """The member was silent, and its process had not heard that it was removed."""
    await fill(storage)
    async with open_process() as other:
        silent = await read(other)
        clock.advance(ms=SESSION_MS + 1)
        successor = await read(storage, "b")
        with nobody_connects(database_url):
            await eventually(is_vouched(storage), True)
            await eventually(is_vouched(other), True)

            reads_on = await read(storage, "b", after=successor)
            with pytest.raises(StorageUnavailable):
                await read(other, after=silent)

    assert shards_of(reads_on.membership) == [0, 1, 2, 3]


async def test_process_alone_cut_off_stops_at_rebalance(
    open_process, storage, groups, lonely_url, database_url
):
    await fill(storage)
    async with open_process(lonely_url) as lonely:
        first = await read(lonely)
        with cut_off(database_url, "lonely"):
            await eventually(is_vouched(lonely), True)
            assert data(await read(lonely, generation=first.membership.generation)) == data(first)

            await groups.join(READERS, member_id="b")

            assert lonely.health.is_postgres_away
            with pytest.raises(StorageUnavailable):
                await read(lonely, generation=first.membership.generation)


@pytest.mark.parametrize("change", ["pause", "delete"])
async def test_reads_stop_when_witness_moves(
    open_process, storage, groups, lonely_url, database_url, change
):
    await fill(storage)
    async with open_process(lonely_url) as lonely:
        first = await read(lonely)
        with cut_off(database_url, "lonely"):
            await eventually(is_vouched(lonely), True)
            await read(lonely, after=first)

            if change == "pause":
                await groups.pause(READERS, paused=True)
            else:
                await groups.delete(READERS)

            await eventually(is_vouched(lonely), False, within_s=5)
            with pytest.raises(StorageUnavailable):
                await read(lonely, after=first)


async def test_paused_or_deleted_group_is_not_read_in_outage(storage, groups, database_url):
    """The change was heard of before the outage, and the member sent no heartbeat since."""
    await fill(storage)
    first = await read(storage)
    await groups.pause(READERS, paused=True)
    await eventually(lambda: _count_cached(groups), 0)
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)

        with pytest.raises(StorageUnavailable):
            await read(storage, after=first)


async def _count_cached(groups) -> int:
    return len(groups._assignments._memberships)


async def test_stale_commit_is_refused_after_outage(
    open_process, storage, groups, lonely_url, database_url, clock
):
    """A member that was cut off alone read on, and its shards were others' meanwhile (G2)."""
    await fill(storage)
    async with open_process(lonely_url) as lonely:
        first = await read(lonely)
        with cut_off(database_url, "lonely"):
            await eventually(is_vouched(lonely), True)
            stale = commits(await read(lonely, after=first)) or commits(first)
            clock.advance(ms=SESSION_MS + 1)
            successor = await read(storage, "b")
        await eventually(is_vouched(lonely), False)

        refused = await lonely.groups.commit(READERS, stale)
        done = await groups.commit(READERS, commits(successor))

    assert {type(one) for one in refused} <= {StaleGeneration, MemberUnknown}
    assert done == [GroupOffset(shard, 3) for shard in range(4)]


async def test_member_restarted_in_outage_reads_on_from_its_commits(storage, groups, database_url):
    await fill(storage)
    first = await read(storage)
    with nobody_connects(database_url):
        await eventually(is_vouched(storage), True)
        done = await groups.commit(READERS, commits(first)[:2])

        again = await read(storage, generation=first.membership.generation)

    assert done == [GroupOffset(shard, 3) for shard in range(2)]
    assert data(again) == [b"2.0", b"2.1", b"2.2", b"3.0", b"3.1", b"3.2"]


async def test_group_without_offsets_is_seeded_by_a_heartbeat(storage, groups, redis_url):
    """The group of an earlier version, or of a hot store that was lost."""
    await fill(storage)
    member = await groups.join(READERS, member_id="a")
    hot_key = group_offsets_key(READERS.namespace, member.group.group_id)
    with redis.Redis.from_url(redis_url) as store:
        store.delete(hot_key)

        await groups.heartbeat(READERS, "a")

        assert int(store.hget(hot_key, "generation") or 0) == member.generation


@asynccontextmanager
async def _silent(storage: Storage, faults):
    """Have the database accept connections and answer nothing."""
    faults.swallow_answers = True
    faults.cut()
    await eventually(is_vouched(storage), True)
    yield
    faults.swallow_answers = False


async def test_silent_postgres_delays_one_read(redis_url, database_url, short_folder, monkeypatch):
    monkeypatch.setattr("storage.postgres.database._REPLY_SECONDS", 0.5)
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url=redis_url, database_url=url)
        async with open_storage(settings) as storage:
            await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
            await storage.groups.put(READERS, GroupSpec(stream="clicks"))
            await fill(storage)
            first = await read(storage)
            async with _silent(storage, faults):
                await read(storage, generation=first.membership.generation)

                async with asyncio.timeout(2):
                    for _ in range(10):
                        again = await read(storage, generation=first.membership.generation)

    assert data(again) == data(first)


async def test_silent_postgres_refuses_joins_without_delay(
    redis_url, database_url, short_folder, monkeypatch
):
    """A read without a token begins a new instance, and took five seconds each time."""
    monkeypatch.setattr("storage.postgres.database._REPLY_SECONDS", 0.5)
    async with running_database_proxy(database_url, short_folder) as (url, faults):
        settings = StorageSettings(redis_url=redis_url, database_url=url)
        async with (
            open_storage(settings) as storage,
            running_server(storage, Limits()) as service,
            httpx.AsyncClient(base_url=service.url, timeout=30) as http,
        ):
            await storage.catalog.put_stream(CLICKS, StreamSpec())
            await storage.groups.put(READERS, GroupSpec(stream="clicks"))
            records, commit = "/v1/groups/readers/records", "/v1/groups/readers/commit"
            member = {"member": "a"}
            token = (await http.get(records, params=member)).json()["token"]
            async with _silent(storage, faults):
                refused = [await http.get(records, params=member)]
                async with asyncio.timeout(4):
                    for _ in range(10):
                        refused += [
                            await http.get(records, params=member),
                            await http.post("/v1/groups/readers/members", json={}),
                        ]
                        nothing = await http.post(commit, json={"token": token})
                        again = await http.get(records, params=member | {"token": token})
                        assert (nothing.status_code, again.status_code) == (200, 200)

    assert {answer.status_code for answer in refused} == {503}
    assert {answer.json()["detail"] for answer in refused} == {
        "Postgres is away: only members that have joined read on, with their last token."
    }
