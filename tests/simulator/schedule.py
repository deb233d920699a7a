"""One schedule: seeded clients and faults in virtual time, and the check of their history.

    queues     Q1 to Q10       every seed whose remainder by two is 0
    streams    S1, S2, S4, G1 to G3, R1    the others
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

from tests.chaos.checker import rejected_send_has_no_effect
from tests.chaos.checking import groups, queues, streams
from tests.chaos.checking.findings import Finding, Operations
from tests.simulator import queue_clients, stream_clients
from tests.simulator.database import Postgres
from tests.simulator.virtual_loop import VirtualLoop
from tests.simulator.world import World

FAULTS_S = 4.0
"""How long clients run beside faults."""

Invariant = Callable[[Operations], Finding]

QUEUE_INVARIANTS: tuple[Invariant, ...] = (
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
)
STREAM_INVARIANTS: tuple[Invariant, ...] = (
    rejected_send_has_no_effect,
    streams.offset_has_one_value,
    streams.appended_record_is_not_lost,
    streams.offsets_increase,
    streams.key_moves_from_parents_to_children,
    streams.skipped_offsets_are_reported,
    streams.repeated_append_is_idempotent,
    streams.replay_sends_each_record_once,
    groups.shard_has_one_owner,
    groups.stale_generation_cannot_commit,
    groups.groups_skip_no_record,
    groups.groups_reach_the_end,
    groups.committed_offsets_never_decrease,
)


def run_schedule(postgres: Postgres, seed: int) -> tuple[list[Finding], World]:
    """Run the schedule of a seed; return what its invariants found, and the world."""
    with _seeded_secrets(seed), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        world = runner.run(_run(postgres, seed))
    invariants = STREAM_INVARIANTS if seed % 2 else QUEUE_INVARIANTS
    history = world.history.operations
    return [invariant(history) for invariant in invariants], world


async def _run(postgres: Postgres, seed: int) -> World:
    world = World(postgres, seed)
    async with world:
        module = stream_clients if seed % 2 else queue_clients
        create = stream_clients.create_stream if seed % 2 else queue_clients.create_queues
        await create(world)
        clients = [
            asyncio.create_task(client(world, f"{client.__name__}-{nth}"))
            for nth, client in enumerate(module.CLIENTS)
        ]
        await _break_things(world)
        world.over = True
        await asyncio.gather(*clients)
        await module.drain(world)
    return world


async def _break_things(world: World) -> None:
    """Break one thing after another, and repair all of them."""
    chance = Random(f"{world.seed} faults")
    until = world.history.now() + FAULTS_S
    while world.history.now() < until:
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        await chance.choice(FAULTS)(world, chance)


async def crash_store(world: World, chance: Random) -> None:
    """End the hot store, and start it again with its data."""
    world.hot.crash()
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    world.hot.start()


async def break_connections(world: World, chance: Random) -> None:
    """Lose every connection to the hot store, with what is on its way."""
    for connection in [*world.hot.connections]:
        if chance.random() < 0.7:
            connection.break_()


async def slow_down(world: World, chance: Random) -> None:
    """Let messages to and from the hot store take long."""
    world.hot.latency_max_s = chance.choice((0.05, 0.5, 3.0))
    await asyncio.sleep(chance.uniform(0.5, 2.0))
    world.hot.reset_latency()


async def kill_process(world: World, _: Random) -> None:
    """Kill a process of the service."""
    await world.restart_process()


async def stop_postgres(world: World, chance: Random) -> None:
    """Let transactions fail before they begin."""
    world.postgres.up = False
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    world.postgres.up = True


async def lose_commits(world: World, chance: Random) -> None:
    """Lose the answers to some commits."""
    world.commits_fail = 0.5
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    world.commits_fail = 0.0


FAULTS: tuple[Callable[[World, Random], Awaitable[None]], ...] = (
    crash_store,
    break_connections,
    break_connections,
    slow_down,
    kill_process,
    stop_postgres,
    lose_commits,
)


@contextmanager
def _seeded_secrets(seed: int) -> Iterator[None]:
    """Take ids from the seed too, so that a schedule takes the same course each time."""
    chance = Random(f"{seed} ids")
    with (
        mock.patch.object(secrets, "token_hex", lambda size=32: chance.randbytes(size).hex()),
        mock.patch.object(secrets, "token_bytes", lambda size=32: chance.randbytes(size)),
        mock.patch.object(secrets, "randbelow", chance.randrange),
    ):
        logging.getLogger("storage").setLevel(logging.CRITICAL)
        yield
