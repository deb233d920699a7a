"""Seeded clients of queues, a stream and a group, in every protocol.

    work        standard   sent, received and pushed over REST, SQS and WebSocket; some messages are returned, some
                           are delayed, some are acknowledged too late
    line.fifo   FIFO       each sender has its own groups, and repeats a send with its id until it is accepted
    fragile     standard   every message is nacked until it is dead-lettered
    doomed      standard   every message is nacked until it is in the dead-letter queue, `morgue`
    events      shards     appended to with idempotency keys, by producers on shards, by PutRecords and over
                           WebSocket; read in all three protocols; split and merged continuously
    readers     group      members over REST and WebSocket come and go, read and commit
    posted      standard   received only by a webhook, whose receiver is slow, fails and drops connections
    posted.fifo FIFO       the same
    posting     group      of `events`, whose records a webhook posts to the same receiver
    tally       view       of `events`, where there is a Spark worker; see `tests.chaos.view_clients`
    pairs       view       of `visits` and its copies, which it joins; see there too
    again-…     streams    replays of parts of `events`, where there is a Spark worker
    notices     topic      published to, while its routes change; see `tests.chaos.topic_clients`
    by-…        both       members of spreads, which change; see `tests.chaos.spread_clients`
    quotes      queue      asked, with replies of its workers; see `tests.chaos.request_clients`
    crowded     topic      a target of which is full at times; see `tests.chaos.target_clients`
    payments    topic      FIFO, published to under repeated deduplication ids
    inbox, …    both       filled by sources, to which providers post; see `tests.chaos.source_clients`
    recreated   stream     deleted and recreated during the faults, with its group; see `tests.chaos.recreation`

One reader follows `events` as server-sent events, disconnects repeatedly, and resumes after the last. At the end
everything is drained.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx

from tests.chaos import (
    pauses,
    push_clients,
    queue_clients,
    request_clients,
    socket_clients,
    source_clients,
    spread_clients,
    stream_clients,
    target_clients,
    topic_clients,
    view_clients,
)
from tests.chaos.callers import ANSWER_S, Caller
from tests.chaos.checker import PAYMENTS, POSTS, VISITS
from tests.chaos.drain import EXPIRED, drain, drain_topics
from tests.chaos.event_follower import Follower
from tests.chaos.history import Kind, Operation, Outcome
from tests.chaos.nemesis import Requests
from tests.chaos.queue_protocols import RestQueues, SqsQueues
from tests.chaos.recreation.clients import RecreationClients
from tests.chaos.replay_clients import replay
from tests.chaos.request_clients import RequestClient
from tests.chaos.socket_protocol import Member, Publisher, Reader, Worker
from tests.chaos.source_clients import TARGET_STREAM, Sources
from tests.chaos.spread_clients import Spreads
from tests.chaos.stage import (
    EVENTS,
    INBOX,
    INBOX_EVENTS,
    LINE,
    NOTICES,
    POSTED_QUEUES,
    POSTING,
    QUEUES,
    READERS,
    SESSION_S,
    SHARDS,
    WORK,
    Stage,
)
from tests.chaos.stream_protocol import Streams
from tests.chaos.target_clients import FullQueue, ReplacedQueue
from tests.chaos.topic_clients import Topics, stream_of
from tests.chaos.view_clients import Tally
from tests.chaos.webhook_receiver import Hooks, receiving_hooks

READY_TRIES, READY_PAUSE_S = 3, 1.0
ROUNDS = (
    5  # consecutive successful rounds, each on new connections, so that several processes answer
)
MEMBERS = 3
PARTITIONS = 3  # of every queue, in every other run

Client = Callable[[Stage, str, Any, Random], Coroutine[Any, Any, None]]


class Workload:
    """All clients of the service."""

    def __init__(
        self,
        stage: Stage,
        *,
        archives: bool,
        kept_s: int | None = None,
        hooks_host: str = "127.0.0.1",
        partitions: bool = True,
        topics: bool = True,
    ) -> None:
        """Prepare the clients.

        `kept_s`: retention of the stream's records and of dead letters; default: the whole run. `hooks_host`: where webhooks
        are received. `partitions`: give the queues several, in every other run; earlier releases refuse that. `topics`: publish
        to a topic, send requests, and keep a view; earlier releases have none. Without `kept_s`: a view counts records that retention
        deletes.
        """
        self._topics = topics
        self._replaced: ReplacedQueue | None = None
        self._full: FullQueue | None = None
        self._asked = request_clients.new_asked()
        self._hooks_host = hooks_host
        self._partitions = (1, PARTITIONS) if partitions else (1,)
        self.stage = stage
        self._archives = archives
        self._has_views = archives and topics and kept_s is None
        self._kept_s = kept_s
        self._tasks: list[asyncio.Task[None]] = []
        self._open = AsyncExitStack()
        self._probes = count()
        self._hooks: Hooks | None = None
        self._follower: Follower | None = None
        self._recreation: RecreationClients | None = None

    async def __aenter__(self) -> Self:
        http = (await self.stage.caller("setup")).http
        partitions = self.stage.chance("partitions").choice(self._partitions)
        for name, queue in {**QUEUES, **POSTED_QUEUES}.items():
            scope = {"dedup_scope": "group"} if queue.get("type") == "fifo" else {}
            config = {**queue, **scope, **({"partitions": partitions} if partitions > 1 else {})}
            dead = {"dead_letter_retention_seconds": self._kept_s} if self._kept_s else {}
            await _insist(http, f"/v1/queues/{name}", {**config, **dead})
        hot = {"archive_lag_seconds": 1, "hot_retention_seconds": 0}
        spec = {"shards": SHARDS, **(hot if self._archives else {"archive": False})}
        kept = {"retention_seconds": self._kept_s} if self._kept_s else {}
        await _insist(http, f"/v1/streams/{EVENTS}", {**spec, **kept})
        await _insist(http, f"/v1/streams/{INBOX_EVENTS}", {**TARGET_STREAM, **kept})
        group = {"stream": EVENTS, "session_timeout_seconds": SESSION_S}
        for name in (READERS, POSTING):
            await _insist(http, f"/v1/groups/{name}", group)
        self._follower = Follower(await self.stage.caller("follower"), EVENTS)
        await self._put_webhooks()
        sources = Sources(await self.stage.caller("setup"))
        await sources.put(INBOX, queue=INBOX)
        await sources.put(INBOX_EVENTS, stream=INBOX_EVENTS, key="/key")
        if self._topics:
            topics = Topics(await self.stage.caller("setup"))
            await topics.create()
            await Spreads(await self.stage.caller("setup")).create()
            assert self._hooks is not None
            target, note_secret = self._hooks.target("of-route", POSTS)
            while (await topics.put_url(target, note_secret)).outcome is not Outcome.OK:
                pass
            await RequestClient(await self.stage.caller("setup"), self._asked).create()
            self._replaced = ReplacedQueue(await self.stage.caller("target-owner"))
            self._full = FullQueue(await self.stage.caller("target-filler"))
            await self._full.create()
        return self

    async def _put_webhooks(self) -> None:
        receiver = receiving_hooks(
            await self.stage.caller("hooks"), self.stage.chance("hooks"), self._hooks_host
        )
        self._hooks = await self._open.enter_async_context(receiver)
        logged = {"log_retention_seconds": self._kept_s} if self._kept_s else {}
        for queue in POSTED_QUEUES:
            await self._hooks.put(f"of-{queue}", f"queue:{queue}", queue, **logged)
        await self._hooks.put(f"of-{POSTING}", f"group:{POSTING}", EVENTS, **logged)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stage.over.set()  # a client may be at a point where a cancellation is lost
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._recreation is not None:
            await self._recreation.cancel()
        await self._open.aclose()

    async def start(self) -> None:
        """Start all clients."""
        for queue_protocol in (RestQueues, SqsQueues):
            name = queue_protocol.__name__.lower()
            await self._run(f"{name}-sender", queue_protocol, queue_clients.send)
            await self._run(f"{name}-fifo-sender", queue_protocol, queue_clients.send_in_order)
            await self._run(f"{name}-posted-sender", queue_protocol, push_clients.send)
            for copy in range(2):
                await self._run(f"{name}-worker-{copy}", queue_protocol, queue_clients.work)
                await self._run(
                    f"{name}-fifo-worker-{copy}", queue_protocol, queue_clients.work_in_order
                )
        await self._run("failing-sender", RestQueues, queue_clients.send_what_fails)
        await self._run("breaker", RestQueues, queue_clients.break_down)
        await self._run("undertaker", SqsQueues, queue_clients.tombstone)
        await self._start_streams()
        await self._start_sockets()
        await self._start_sources()
        if self._topics:
            await self._start_topics()
            await self._start_requests()

    async def _start_requests(self) -> None:
        clients = {"asker": request_clients.ask, "quoter": request_clients.work}
        for name, client in clients.items():
            for number in range(2):
                await self._run(f"{name}-{number}", self._requests, client)
        await self._run("asker-again", self._requests, request_clients.ask_again)

    def _requests(self, caller: Caller) -> RequestClient:
        return RequestClient(caller, self._asked)

    async def _start_topics(self) -> None:
        for number in range(3):
            await self._run(f"publisher-of-notices-{number}", Topics, topic_clients.publish)
            await self._run(f"payer-{number}", Topics, topic_clients.pay)
            await self._run(f"visitor-{number}", Topics, topic_clients.visit)
            await self._run(f"shipper-{number}", Topics, topic_clients.ship)
        await self._run("chooser", Topics, topic_clients.choose)
        await self._run("single-publisher", Topics, topic_clients.publish_once)
        await self._run("target-worker", lambda _: self._replaced, target_clients.work)
        await self._run("route-changer", Topics, topic_clients.change_route)
        await self._run("route-remaker", Topics, topic_clients.remake_route)
        await self._run("spread-changer", Spreads, spread_clients.change)
        await self._run("late-router", Topics, topic_clients.start_in_past)
        for topic in (NOTICES, PAYMENTS, VISITS):
            reshard = partial(stream_clients.reshard, stream=stream_of(topic))
            await self._run(f"{topic}-resharder", Streams, reshard)

    async def _start_streams(self) -> None:
        for number in range(2):
            await self._run(f"appender-{number}", Streams, stream_clients.append)
            await self._run(f"producer-{number}", Streams, stream_clients.produce)
        for number in range(MEMBERS):
            await self._run(f"member-{number}", Streams, stream_clients.belong)
        await self._run("watcher", Streams, stream_clients.watch)
        await self._run("resharder", Streams, stream_clients.reshard)
        await self._run("putter", self.stage.kinesis, stream_clients.put)
        await self._run("getter", self.stage.kinesis, stream_clients.get)
        await self._run("follower", lambda _: self._follower, push_clients.follow)
        if self._archives:
            await self._run("replayer", Streams, replay)
        if self._has_views:
            await self._run("view-changer", Tally, view_clients.change)
            await self._run("joiner", lambda caller: caller, view_clients.join)

    async def _start_sockets(self) -> None:
        url = self.stage.url
        await self._run("publisher", lambda one: Publisher(one, url), socket_clients.publish)
        await self._run("socket-worker", lambda one: Worker(one, url, WORK), socket_clients.work)
        await self._run("socket-reader", lambda one: Reader(one, url, EVENTS), socket_clients.read)
        await self._run(
            "socket-member",
            lambda one: Member(one, url, EVENTS, READERS),
            socket_clients.belong,
        )

    async def _start_sources(self) -> None:
        for number in range(2):
            await self._run(f"provider-{number}", Sources, source_clients.post)
        await self._run("late-provider", Sources, source_clients.post_to_absent)
        await self._run("inbox-worker", RestQueues, source_clients.receive)
        reshard = partial(stream_clients.reshard, stream=INBOX_EVENTS)
        await self._run("inbox-resharder", Streams, reshard)

    async def start_recreation(self) -> Requests:
        """Start the clients of the stream that is recreated; return the faults that are requests."""
        recreation = RecreationClients(self.stage)
        await recreation.start()
        self._recreation = recreation
        operator = await self.stage.caller("operator")

        async def recreate_stream(_: float) -> None:
            await recreation.delete()

        async def pause_queue(lasts: float) -> None:
            await pauses.pause_queue(operator, WORK, lasts)

        async def pause_group(lasts: float) -> None:
            await pauses.pause_group(operator, READERS, lasts)

        requests = {
            "recreate_stream": recreate_stream,
            "pause_queue": pause_queue,
            "pause_group": pause_group,
        }
        if self._replaced is not None and self._full is not None:
            requests |= {"recreate_target": self._replaced.replace, "fill_target": self._full.fill}
        return requests

    def check(self) -> None:
        """Raise what a client raised; none may end by itself."""
        for task in self._tasks:
            if task.done():
                task.result()
                raise AssertionError(f"{task.get_name()} has ended")

    async def stop(self) -> None:
        """Let all clients finish, and raise what a client raised."""
        self.stage.over.set()
        await asyncio.gather(*self._tasks)

    async def drain(self) -> None:
        """Drain queues, stream and group, and record the final state."""
        assert self._hooks is not None
        assert self._follower is not None
        if self._recreation is not None:
            await self._recreation.write_last()
        await drain(
            self.stage,
            self._hooks,
            self._follower,
            archives=self._archives,
            views=self._has_views,
        )
        if self._replaced is not None:
            await drain_topics(self.stage, self._replaced.log, views=self._has_views)
        if self._recreation is not None:
            await self._recreation.read_to_the_end()

    async def _run(self, name: str, protocol: Callable[[Caller], Any], client: Client) -> None:
        caller = await self.stage.caller(name)
        acting = client(self.stage, name, protocol(caller), self.stage.chance(name))
        self._tasks.append(asyncio.create_task(acting, name=name))

    async def recovered(self, bound_s: float, rounds: int = ROUNDS) -> float | None:
        """Seconds until everything succeeds several times in a row; None if above the bound.

        On a busy machine the later rounds take longer than what is measured.
        """
        began = self.stage.history.now()
        well, back_s = 0, 0.0
        while well < rounds:
            is_well = await self._everything_goes_well(next(self._probes))
            if not well:
                back_s = self.stage.history.now() - began
                if back_s > bound_s:
                    return None
            well = well + 1 if is_well else 0
        return back_s

    async def _everything_goes_well(self, number: int) -> bool:
        url = self.stage.url
        async with httpx.AsyncClient(base_url=url, timeout=ANSWER_S, trust_env=False) as http:
            caller = Caller("probe", self.stage.history, http)
            streams = Streams(caller)
            told: list[Operation] = []
            for protocol in (RestQueues(caller), SqsQueues(caller)):
                value = f"probe:{type(protocol).__name__}:{number}"
                told.append(await protocol.send(WORK, value))
                told.append(await protocol.send(LINE, f"{value}:line", group="probe"))
                received = await protocol.receive(WORK, 1, wait_s=0)
                told.append(received)
                told += [await protocol.settle(WORK, one, Kind.ACK) for one in received.seen]
            told.append(await streams.append(EVENTS, f"probe:{number}", "probe"))
            told.append(await streams.read(EVENTS, 0, 0))
            told.append(await streams.standing(EVENTS, READERS))
            return all(is_well(one) for one in told) and await _is_ready(http)


def is_well(one: Operation) -> bool:
    """Return whether a healthy service may answer so.

    A shard may begin behind its offset 0: its log was being created when the response was lost.
    """
    return one.outcome is Outcome.OK or one.code == EXPIRED


async def _is_ready(http: httpx.AsyncClient) -> bool:
    """Ask as a supervisor does, more than once: on a busy machine the result is that of the question before."""
    for _ in range(READY_TRIES):
        if (await http.get("/readyz")).is_success:
            return True
        await asyncio.sleep(READY_PAUSE_S)
    return False


async def _insist(http: httpx.AsyncClient, path: str, body: Any) -> None:
    (await http.put(path, json=body)).raise_for_status()
