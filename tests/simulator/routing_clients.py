"""Routers in every process, and how far they are."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from consumers.routing.router import Router
from storage.bootstrap import Storage
from storage.domain.names import StreamName
from storage.domain.streams.lineage import have_passed
from storage.domain.topics.route import TopicRoute
from tests.chaos.history import Seen
from tests.simulator.target_clients import PAUSE_S
from tests.simulator.world import Killed, SimulatedCaller, World


async def run_routers(world: World, name: str) -> None:
    """Route in one process after another, each until it is killed."""
    client = SimulatedCaller(world, name)
    while world.goes_on:
        running = asyncio.create_task(_route(world))
        while not running.done() and world.goes_on:
            await client.pause(PAUSE_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def routing(world: World) -> AsyncGenerator[None]:
    """Route in a process during the block."""
    running = asyncio.create_task(_route(world))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _route(world: World) -> None:
    process = await world.process()
    try:
        await process.call(lambda storage: Router(storage).run())
    except Killed:
        return


def number_of(route: TopicRoute) -> dict[str, Any]:
    """Return a route's name and number, for a history."""
    return {"seen": (Seen(value=route.name.route, offset=route.number),)}


async def waiting_of(name: StreamName, storage: Storage) -> int:
    """Return how many buffers of a topic have not reached the ends of all shards."""
    topic = await storage.catalog.fresh_stream(name)
    positions = await storage.topic_routing.positions.read(topic.stream_id)
    states = await storage.record_reader.shards(name)
    ends = {state.shard.index: state.next for state in states}
    frontiers = [positions.shards, *positions.lags.values()]
    return sum(not have_passed(topic, frontier, ends) for frontier in frontiers)
