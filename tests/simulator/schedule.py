"""One schedule: seeded clients and faults in virtual time, and the check of their history."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple
from unittest import mock

from storage.bootstrap import Storage
from storage.domain import limits
from tests.chaos.checker import rejected_send_has_no_effect
from tests.chaos.checking import (
    groups,
    queues,
    requests,
    routing,
    sources,
    spreads,
    streams,
    topics,
)
from tests.chaos.checking.findings import Finding, Operations
from tests.chaos.history import History
from tests.chaos.stage import EVENTS
from tests.simulator import (
    queue_clients,
    queue_route_clients,
    request_clients,
    source_clients,
    spread_clients,
    stream_clients,
    topic_clients,
)
from tests.simulator.database import Postgres
from tests.simulator.failures import recorded_failures
from tests.simulator.target_clients import REPLACED
from tests.simulator.virtual_loop import VirtualLoop
from tests.simulator.world import Client, World

FAULTS_S = 4.0
"""Duration of the clients' work beside faults."""
BUFFERED_MAX = 5
"""Copies for one target that a router buffers: few, so that targets lag behind it often."""
BLOCK_COPIES = 3
"""Copies that a router sorts by target at once: few, so that much happens in the middle of a chunk."""
SCHEDULE_S_MAX = 400.0
"""Virtual time by which clients and drain have come to their ends."""

EXERCISED_WITHIN = {
    "Q2 a stale delivery cannot be acknowledged": 10,
    "G2 a stale generation cannot commit": 15,
    "T2 an unacknowledged message is whole": 30,
    "T1 a recreated target misses only earlier messages": 10,
}
"""Number of schedules that give evidence of an invariant; of the others each one does."""

Invariant = Callable[[Operations], Finding]
Fault = Callable[[World, Random], Awaitable[None]]


class Profile(NamedTuple):
    """Clients of one kind, the faults beside them, and the invariants that must hold."""

    name: str
    create: Callable[[Storage], Awaitable[None]]
    clients: tuple[Client, ...]
    drain: Callable[[World], Awaitable[object]]
    faults: "tuple[Fault, ...]"
    invariants: tuple[Invariant, ...]


def run_schedule(
    postgres: Postgres, seed: int, profile: Profile, seconds_max: float = SCHEDULE_S_MAX
) -> tuple[list[Finding], History]:
    """Run the schedule of a seed; return what the invariants found, and the history.

    One that has not ended after `seconds_max` of virtual time is cut off.
    """
    world = World(postgres, seed)
    with (
        _seeded_secrets(seed),
        recorded_failures() as recorder,
        mock.patch.object(limits, "ROUTER_OUTBOX_RECORDS", BUFFERED_MAX),
        mock.patch.object(limits, "ROUTER_BLOCK_COPIES", BLOCK_COPIES),
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        runner.get_loop().set_exception_handler(recorder.handle_loop_context)
        try:
            runner.run(_run(world, profile, seconds_max))
        except TimeoutError:
            recorder.failures.append(f"after {seconds_max} s still waiting for {world.waits_for}")
        except Exception as error:
            recorder.record(error)
    operations = world.history.operations
    ends = Finding("every schedule ends, without exceptions", 1, tuple(recorder.failures))
    return [ends, *(invariant(operations) for invariant in profile.invariants)], world.history


async def _run(world: World, profile: Profile, seconds_max: float) -> None:
    async with world:
        await (await world.process()).call(profile.create)
        async with asyncio.timeout(seconds_max):
            async with asyncio.TaskGroup() as clients:
                for nth, client in enumerate(profile.clients):
                    clients.create_task(client(world, f"{client.__name__}-{nth}"))
                await _break_things(world, profile.faults)
                world.goes_on = False
            await profile.drain(world)


async def _break_things(world: World, faults: Sequence[Fault]) -> None:
    """Break one thing after another, and repair all of them."""
    chance = Random(f"{world.seed} faults")
    until = world.history.now() + FAULTS_S
    while world.history.now() < until:
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        await chance.choice(faults)(world, chance)


async def crash_store(world: World, chance: Random) -> None:
    """End the hot store, and start it again with its data."""
    world.hot.crash()
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    world.hot.start()


async def break_connections(world: World, chance: Random) -> None:
    """Break most connections to the hot store, in both directions or only towards the client."""
    for session in [*world.hot.sessions]:
        if chance.random() < 0.7:
            chance.choice((session.end, session.lose_client))()


async def lose_replies(world: World, chance: Random) -> None:
    """Break connections after many commands, whose outcomes are unknown then."""
    world.hot.replies_lost = 0.3
    await asyncio.sleep(chance.uniform(0.3, 1.5))
    world.hot.replies_lost = 0.0


async def fail_one_script(world: World, chance: Random) -> None:
    """Break connections at each call of one script, so that what it follows is done and it is not."""
    if scripts := [*world.hot.scripts_run]:
        world.hot.failing_script = chance.choice(scripts)
        await asyncio.sleep(chance.uniform(0.3, 2.0))
        world.hot.failing_script = b""


async def slow_down(world: World, chance: Random) -> None:
    """Let messages to and from the hot store take long."""
    world.hot.latency_max_s = chance.choice((0.05, 0.5, 3.0))
    await asyncio.sleep(chance.uniform(0.5, 2.0))
    world.hot.reset_latency()


async def kill_process(world: World, _: Random) -> None:
    """Kill a process of the service."""
    await world.restart_process()


async def stop_postgres(world: World, chance: Random) -> None:
    """End the transactions in progress, and let others fail."""
    world.postgres.up = False
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    world.postgres.up = True


async def lose_commits(world: World, chance: Random) -> None:
    """Lose the answers to some commits."""
    world.commits_fail = 0.5
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    world.commits_fail = 0.0


async def fail_over(world: World, chance: Random) -> None:
    """Promote a replica of the hot store that has missed the last writes."""
    snapshot = world.hot.keyspace.copy()
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    world.hot.fail_over(snapshot)


_FAULTS: tuple[Fault, ...] = (
    crash_store,
    break_connections,
    lose_replies,
    lose_replies,
    fail_one_script,
    fail_one_script,
    slow_down,
    kill_process,
    stop_postgres,
    lose_commits,
)
QUEUES = Profile(
    "queues",
    queue_clients.create_queues,
    queue_clients.CLIENTS,
    queue_clients.drain,
    _FAULTS,
    (
        queues.delivery_is_returned_once,
        queues.stale_delivery_cannot_be_acknowledged,
        queues.receive_count_increases,
        queues.acknowledged_message_is_not_redelivered,
        queues.accepted_message_is_not_lost,
        rejected_send_has_no_effect,
        queues.message_groups_are_ordered,
        queues.repeated_send_is_one_message,
        queues.timeouts_are_respected,
        queues.dead_letters_are_unique,
        queues.dead_letter_queue_receives_once,
        queues.counts_are_consistent,
    ),
)
PARTITIONS = QUEUES._replace(name="partitions", create=queue_clients.create_partitioned_queues)
_AFTER_LOSSES: tuple[Invariant, ...] = (
    streams.offset_has_one_value,
    streams.offsets_increase,
    streams.skipped_offsets_are_reported,
    groups.shard_has_one_owner,
    groups.groups_reach_the_end,
)
STREAMS = Profile(
    "streams",
    stream_clients.create_stream,
    stream_clients.CLIENTS,
    stream_clients.drain,
    _FAULTS,
    (
        *_AFTER_LOSSES,
        rejected_send_has_no_effect,
        streams.appended_record_is_not_lost,
        streams.key_moves_from_parents_to_children,
        streams.repeated_append_is_idempotent,
        streams.replay_sends_each_record_once,
        groups.stale_generation_cannot_commit,
        groups.groups_skip_no_record,
        groups.committed_offsets_never_decrease,
    ),
)
LOSSES = Profile(
    "losses",
    stream_clients.create_stream,
    stream_clients.CLIENTS,
    stream_clients.read_all,
    (*_FAULTS, fail_over, fail_over, fail_over),
    _AFTER_LOSSES,
)
SOURCES = Profile(
    "sources",
    source_clients.create_sources,
    source_clients.CLIENTS,
    source_clients.drain,
    _FAULTS,
    (sources.event_is_in_its_target_once,),
)
_OF_ROUTES = {topic_clients.DEAD: topic_clients.STRICT, **spread_clients.LOGS}
"""Routes by the logs of their dead letters, and of the members of spreads."""
_APART = (REPLACED, topic_clients.CHOSEN, *topic_clients.TWICE_ROUTES)
"""Routes whose targets have invariants of their own."""
TOPICS = Profile(
    "topics",
    topic_clients.create_topic,
    topic_clients.CLIENTS,
    topic_clients.drain,
    _FAULTS,
    (
        topics.accepted_message_is_kept,
        topics.message_reaches_each_route_once(_OF_ROUTES, topic_clients.LATE, *_APART),
        routing.unacknowledged_message_is_whole(_OF_ROUTES, *_APART),
        spreads.message_is_in_its_member(spread_clients.SPREAD, spread_clients.TARGETS),
        topics.messages_of_key_keep_order(spread_clients.THIRD),
        routing.routes_bring_one_copy_each(topic_clients.TWICE, topic_clients.TWICE_ROUTES),
        routing.full_target_delays_no_other,
        routing.decision_is_final(topic_clients.LATE),
        routing.recreated_target_misses_only_earlier(REPLACED),
        topics.dead_letters_do_not_fit(
            topic_clients.DEAD, topic_clients.STRICT, topic_clients.is_fitting
        ),
        topics.routes_are_cut_exactly(topics.subject_of),
        topics.records_reach_changed_route(
            topic_clients.SOURCE.topic.name, topic_clients.CHOSEN, topics.subject_of
        ),
        topics.messages_of_key_keep_order(topic_clients.CHOSEN),
        topics.messages_of_key_keep_order(topic_clients.COPIED),
        topics.messages_of_key_keep_order(EVENTS),
        topics.route_from_earliest_takes_all(topic_clients.LATE),
        topics.counts_of_routes_add_up(topic_clients.LATE),
        topics.messages_of_key_keep_order(topic_clients.LATE),
        topics.dedup_id_adds_one_message(topic_clients.PAYMENTS.name),
        topics.first_messages_keep_order(topic_clients.PAYMENTS.name),
    ),
)
QUEUE_ROUTES = Profile(
    "queue-routes",
    queue_route_clients.create_queues,
    queue_route_clients.CLIENTS,
    queue_route_clients.drain,
    _FAULTS,
    (
        topics.accepted_message_is_kept,
        topics.message_reaches_each_route_once({}),
        topics.messages_of_key_keep_order(queue_route_clients.ORDERED),
    ),
)
REQUESTS = Profile(
    "requests",
    request_clients.create_queue,
    request_clients.CLIENTS,
    request_clients.drain,
    _FAULTS,
    (requests.request_has_its_replies, requests.reply_is_for_its_request),
)
PROFILES = {
    profile.name: profile
    for profile in (QUEUES, PARTITIONS, STREAMS, LOSSES, SOURCES, TOPICS, QUEUE_ROUTES, REQUESTS)
}


@contextmanager
def _seeded_secrets(seed: int) -> Iterator[None]:
    """Take ids from the seed too, so that a schedule takes the same course each time."""
    chance = Random(f"{seed} ids")
    with (
        mock.patch.object(secrets, "token_hex", lambda size=32: chance.randbytes(size).hex()),
        mock.patch.object(secrets, "token_bytes", lambda size=32: chance.randbytes(size)),
        mock.patch.object(secrets, "randbelow", chance.randrange),
    ):
        yield
