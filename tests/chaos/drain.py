"""The end of a run: drain sources and queues, read all records, and record the final state."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.chaos import view_clients
from tests.chaos.callers import Caller, Told
from tests.chaos.checker import (
    CHOSEN,
    COPIES,
    LATE,
    PARCELS,
    PAYMENTS,
    POSTS,
    REPLACED,
    SHIPPED,
    SPREADS,
    TWICE,
    TWICE_ROUTES,
    VISIT_COPIES,
    VISITS,
)
from tests.chaos.checking.queues import STAYING
from tests.chaos.event_follower import Follower
from tests.chaos.history import Kind, Outcome, Seen, name_of
from tests.chaos.queue_protocols import Delivery, QueueProtocol, RestQueues
from tests.chaos.spread_clients import members
from tests.chaos.stage import (
    DOOMED,
    EVENTS,
    FRAGILE,
    INBOX,
    LEDGER,
    MORGUE,
    NOTICES,
    PAUSE_S,
    POSTED_QUEUES,
    QUEUES,
    READERS,
    RECEIVES_MAX,
    REMADE,
    ROUTED,
    Stage,
)
from tests.chaos.stream_protocol import Streams
from tests.chaos.topic_clients import Topics, queue_of, stream_of
from tests.chaos.webhook_receiver import Hooks

STANDSTILL_S = 60.0
"""A wait ends after this long without progress; total durations differ by machine."""
PAGE = 100
FAILING = (FRAGILE, DOOMED)
TOPICS = (NOTICES, PAYMENTS, VISITS, PARCELS)
CONCURRENCY_MAX = 8
ARCHIVED_S = 120.0
LOOK_S = 0.5
LAST_RECORDS = 12
"""Records that are hot when everything else is archived."""
EXPIRED = "offset_expired"


class Patience:
    """A wait that ends when there is no progress for a while; `now` is in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._best: int | None = None
        self._since = now()

    def lasts(self, progress: int) -> bool:
        """Return whether to continue waiting; `progress` is highest at the end."""
        now = self._now()
        if self._best is None or progress > self._best:
            self._best, self._since = progress, now
        return now < self._since + STANDSTILL_S


async def drain(
    stage: Stage, hooks: Hooks, follower: Follower, *, archives: bool, views: bool
) -> None:
    """Drain sources and queues, dead letters last, then the stream from both tiers, then its readers."""
    caller = await stage.caller("drain")
    queues, streams = RestQueues(caller), Streams(caller)
    await _until_transferred(stage, caller)
    first = [name for name in QUEUES if name != MORGUE]
    await asyncio.gather(
        *(_empty(stage, caller, queues, name) for name in first),
        *(_until_empty(stage, caller, name) for name in POSTED_QUEUES),
    )
    await _empty(stage, caller, queues, MORGUE)
    for name in (*QUEUES, *POSTED_QUEUES):
        await _note_counts(stage, caller, name)
        await _list_dead_letters(stage, caller, name)
    if archives:
        await _archive(stage, caller)
    for number in range(LAST_RECORDS):
        await streams.append(EVENTS, f"drain:{number}", f"drain-{number}")
    shards = [*await streams.shards(EVENTS)]
    ends = await _ends(streams, EVENTS, shards)
    for stream in sorted(_event_targets(stage) - {INBOX}):
        await _ends(streams, stream, [*await streams.shards(stream)])
    await _read_by_kinesis(stage, shards)
    await asyncio.gather(
        _read_group_to(stage, streams, ends),
        _until_posted(stage, hooks, ends),
        _follow_to(stage, follower, ends),
    )
    if views:
        await view_clients.note_rows(caller, ends)


async def drain_topics(stage: Stage, replaced: str, *, views: bool) -> None:
    """Wait until every copy was made, then empty the targets and read the topics, and the join.

    `replaced`: the log of the queue that was deleted and created again.
    """
    caller = await stage.caller("drain-topic")
    queues, streams = RestQueues(caller), Streams(caller)
    while (await Topics(caller).put_late()).outcome is not Outcome.OK:
        pass
    await _until_empty(stage, caller, queue_of(PARCELS))
    await _list_dead_letters(stage, caller, queue_of(PARCELS), log=PARCELS)
    patience = Patience(stage.history.now)
    while patience.lasts(-(lag := sum([await _topic_lag(caller, one) for one in TOPICS]))):
        if not lag:
            break
        await asyncio.sleep(LOOK_S)
    await _until_empty(stage, caller, f"route:{NOTICES}.{POSTS}")
    for queue in (ROUTED, REMADE, LEDGER, TWICE, *members("queue"), replaced):
        await _empty(stage, caller, queues, queue)
    ends: dict[str, dict[int, int]] = {}
    for stream in (COPIES, LATE, VISIT_COPIES, CHOSEN, SHIPPED, *members("stream")):
        ends[stream] = await _ends(streams, stream, [*await streams.shards(stream)])
    for route in (COPIES, LATE, ROUTED, POSTS, REPLACED, *TWICE_ROUTES, *SPREADS):
        await Topics(caller).note_stats(stage, route)
    for topic in TOPICS:
        log = stream_of(topic)
        ends[log] = await _ends(streams, log, [*await streams.shards(log)])
        await _note_taken(stage, caller, topic)
    if views:
        await view_clients.note_pairs(caller, ends)
        await view_clients.note_unmatched(caller)


async def _topic_lag(caller: Caller, topic: str) -> int:
    stats = await caller.http.get(f"/v1/topics/{topic}/stats")
    return int(stats.raise_for_status().json()["lag_messages"])


async def _note_taken(stage: Stage, caller: Caller, topic: str) -> None:
    """Record every message of the topic with the numbers of its routes."""
    log = stream_of(topic)
    stream = (await caller.http.get(f"/v1/streams/{log}/shards")).raise_for_status().json()
    messages = {
        (seen.shard, seen.offset): seen
        for one in stage.history.operations
        if one.kind is Kind.READ and one.log == log and one.client == caller.name
        for seen in one.seen
    }
    slots = asyncio.Semaphore(CONCURRENCY_MAX)

    async def taken(seen: Seen) -> Seen:
        place = f"{stream['stream_id']}-{seen.shard}-{seen.offset}"
        async with slots:
            report = await caller.http.get(f"/v1/topics/{topic}/messages/{place}/routes")
        routes = report.raise_for_status().json()["routes"]
        if topic == VISITS:  # a finished revision of the route that changes is forgotten
            routes = [route for route in routes if route["route"] != CHOSEN]
        return replace(seen, routes=tuple(route["number"] for route in routes))

    noted = await asyncio.gather(*(taken(seen) for seen in messages.values()))
    caller.went_well(Kind.TAKEN, topic, stage.history.now(), Told(tuple(noted)))


async def _until_transferred(stage: Stage, caller: Caller) -> None:
    """Wait until no event waits for its target, or there is no progress."""
    patience = Patience(stage.history.now)
    while patience.lasts(-(waiting := await _waiting_events(stage, caller))):
        if not waiting:
            return
        await asyncio.sleep(LOOK_S)


async def _waiting_events(stage: Stage, caller: Caller) -> int:
    """Return the number of events in the outboxes of all sources."""
    waiting = 0
    for source in _event_targets(stage):  # a source has the name of its target
        stats = await caller.http.get(f"/v1/sources/{source}/stats")
        waiting += stats.raise_for_status().json()["waiting"]
    return waiting


def _event_targets(stage: Stage) -> set[str]:
    operations = stage.history.operations
    return {operation.log for operation in operations if operation.kind is Kind.EVENT}


async def _empty(stage: Stage, caller: Caller, protocol: QueueProtocol, queue: str) -> None:
    """Empty a queue, until nothing is waiting or there is no progress."""
    patience, left = Patience(stage.history.now), await _left(caller, queue)
    settle = Kind.NACK if queue in FAILING else Kind.ACK
    while left and patience.lasts(-left):
        received = await protocol.receive(queue, 10, wait_s=0)
        await asyncio.gather(
            *(
                protocol.settle(queue, item, settle)
                for item in received.seen
                if isinstance(item, Delivery)
            )
        )
        left = await _left(caller, queue)
        if left and not received.seen:
            await asyncio.sleep(5 * PAUSE_S)


async def _until_empty(stage: Stage, caller: Caller, queue: str) -> None:
    """Wait until the queue's webhook or routes have emptied it, or there is no progress."""
    patience = Patience(stage.history.now)
    while patience.lasts(-(left := await _left(caller, queue))):
        if not left:
            return
        await asyncio.sleep(LOOK_S)


async def _left(caller: Caller, queue: str) -> int:
    """The number of messages left."""
    counts = await _counts(caller, queue)
    return sum(counts[name] for name in STAYING)


async def _counts(caller: Caller, queue: str) -> dict[str, Any]:
    path = f"/v1/queues/{name_of(queue)}/stats"
    body = (await caller.http.get(path)).raise_for_status().json()
    return dict(body)


async def _note_counts(stage: Stage, caller: Caller, queue: str) -> None:
    counts = await _counts(caller, queue)
    numbers = {name: count for name, count in counts.items() if isinstance(count, int)}
    target = ""
    if queue == DOOMED:
        target, numbers["receives_max"] = MORGUE, RECEIVES_MAX
    stage.note(caller.name, Kind.STATS, queue, counts=numbers, target=target)


async def _list_dead_letters(stage: Stage, caller: Caller, queue: str, log: str = "") -> None:
    """Record the dead letters of a queue, as those of `log` if that is given."""
    cursor: str | None = ""
    seen: list[Seen] = []
    while cursor is not None:
        query: dict[str, Any] = {"limit": PAGE, **({"cursor": cursor} if cursor else {})}
        answer = await caller.http.get(f"/v1/queues/{queue}/dead-letters", params=query)
        page = answer.raise_for_status().json()
        seen += [Seen(value=item["body"], id=item["id"]) for item in page["items"]]
        cursor = page["next_cursor"]
    stage.note(caller.name, Kind.DEAD_LETTERS, log or queue, seen=tuple(seen))


async def _archive(stage: Stage, caller: Caller) -> None:
    """Wait until everything is archived and trimmed, up to the deadline."""
    give_up_at = stage.history.now() + ARCHIVED_S
    (await caller.http.post(f"/v1/archives/{EVENTS}/flushes")).raise_for_status()
    while stage.history.now() < give_up_at:
        answer = await caller.http.get(f"/v1/archives/{EVENTS}")
        shards = answer.raise_for_status().json()["shards"]
        if all(shard["hot_start_offset"] == shard["next_offset"] for shard in shards):
            return
        await asyncio.sleep(LOOK_S)


async def _ends(streams: Streams, stream: str, shards: list[int]) -> dict[int, int]:
    """Read every shard from its start; return the next offsets of those with records."""
    slots = asyncio.Semaphore(CONCURRENCY_MAX)

    async def read(shard: int) -> int:
        async with slots:
            return await _read_all(streams, stream, shard)

    ends = await asyncio.gather(*(read(shard) for shard in shards))
    return {shard: end for shard, end in zip(shards, ends, strict=True) if end}


async def _read_all(streams: Streams, stream: str, shard: int) -> int:
    """Read a shard from its start; return its next offset, 0 if it has no records."""
    offset, end = 0, 0
    while True:
        read = await streams.read(stream, shard, offset)
        if read.code == EXPIRED:
            offset = await streams.begin(stream, shard, offset)
            continue
        assert read.outcome is Outcome.OK, f"the drain was answered {read.status} {read.code}"
        gap = max([gap.next for gap in read.gaps], default=offset)
        if not read.seen and gap == offset:
            return end
        end = max([end, *(seen.offset + 1 for seen in read.seen)])
        offset = max(gap, end)


async def _read_by_kinesis(stage: Stage, shards: list[int]) -> None:
    """Read every shard over the Kinesis protocol, to compare parents' and children's numbers."""
    protocol = stage.kinesis(await stage.caller("drain"))
    for shard in shards:
        iterator = await protocol.iterator(EVENTS, shard, "")
        last: tuple[Seen, ...] = ()
        first = -1  # wherever the shard begins
        while iterator is not None:
            read, result = await protocol.get(EVENTS, shard, iterator, first)
            assert read.outcome is Outcome.OK, f"the drain was answered {read.status} {read.code}"
            iterator = result.get("NextShardIterator") if read.seen else None
            last = read.seen or last
            first = last[-1].offset + 1 if last else -1


async def _read_group_to(stage: Stage, streams: Streams, ends: dict[int, int]) -> None:
    """Wait until the group has reached the end of every shard, or there is no progress."""
    patience = Patience(stage.history.now)
    stands: dict[int, int] = {}
    while patience.lasts(sum(stands.values())):
        read, token = await streams.read_as(EVENTS, READERS)
        if token:
            await streams.commit(read, token)
        standing = await streams.standing(EVENTS, READERS)
        stands = {item.shard: item.offset for item in standing.seen}
        if all(stands.get(shard) == end for shard, end in ends.items()):
            return


async def _until_posted(stage: Stage, hooks: Hooks, ends: dict[int, int]) -> None:
    """Wait until the webhook of the stream's group has reached the end of every shard.

    Gives up without progress. Records of a shard are posted one by one, and only after all its
    parents, so the faults may leave a long backlog.
    """
    patience = Patience(stage.history.now)
    while patience.lasts(sum(hooks.reached.values())):
        if _is_at(hooks.reached, ends):
            return
        await asyncio.sleep(LOOK_S)


async def _follow_to(stage: Stage, follower: Follower, ends: dict[int, int]) -> None:
    """Follow to the end of every shard, or until there is no progress."""
    patience = Patience(stage.history.now)
    while not _is_at(follower.reached, ends) and patience.lasts(sum(follower.reached.values())):
        await follower.follow(LOOK_S)


def _is_at(reached: dict[int, int], ends: dict[int, int]) -> bool:
    return all(reached.get(shard, 0) >= end for shard, end in ends.items())
