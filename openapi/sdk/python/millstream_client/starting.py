"""Subscription plans: source and start.

The start is resolved to offsets, so that any connection can continue without a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from millstream_client import records as wire
from millstream_client.conversing import BYTES_DEFAULT, MESSAGES_DEFAULT, Ask
from millstream_client.core.api.groups.get_consumer_group import get_consumer_group
from millstream_client.core.api.streams.list_shards import list_shards

if TYPE_CHECKING:
    from millstream_client.aio.transport import AsyncTransport
    from millstream_client.core.models.shard_out import ShardOut
    from millstream_client.records import ShardRead, Start


@dataclass(frozen=True)
class Plan:
    """One of: a `queue`; a `stream`, from `start` or `offsets`; a `group`.

    `messages` and `bytes` limit the prefetch.
    """

    queue: str = ""
    stream: str = ""
    group: str = ""
    start: Start = "latest"
    offsets: Mapping[int, int] | None = None
    shard: int | None = None
    filter: Mapping[str, Any] | None = None
    visibility_timeout_seconds: float | None = None
    auto_extend: bool = True
    messages: int = MESSAGES_DEFAULT
    bytes: int = BYTES_DEFAULT


async def resolve(transport: AsyncTransport, plan: Plan) -> Ask:
    """Return the subscription request of a plan. Raises MillstreamError."""
    if plan.queue:
        extra: dict[str, Any] = {"mode": "work", "auto_extend": plan.auto_extend}
        if plan.visibility_timeout_seconds is not None:
            extra["visibility_timeout_seconds"] = plan.visibility_timeout_seconds
        return _ask(plan, f"queue:{plan.queue}", extra=extra)
    if plan.group:
        stream = (await transport.call(get_consumer_group(plan.group))).stream
        return _ask(plan, f"stream:{stream}", group=plan.group, extra=_filter_of(plan))
    stream_id, positions = await _positions(transport, plan)
    extra = {"mode": "read", "start": {"from": "earliest"}}
    extra |= {} if plan.shard is None else {"shard": plan.shard}
    extra |= _filter_of(plan)
    source = f"stream:{plan.stream}"
    return _ask(plan, source, positions=positions, stream_id=stream_id, extra=extra)


def _filter_of(plan: Plan) -> dict[str, Any]:
    return {} if plan.filter is None else {"filter": dict(plan.filter)}


def _ask(plan: Plan, source: str, **more: Any) -> Ask:
    return Ask(source, messages=plan.messages, bytes=plan.bytes, **more)


async def _positions(transport: AsyncTransport, plan: Plan) -> tuple[str, Mapping[int, int]]:
    """Return the stream's id, if it is known, and the next offset of each shard for a reader.

    Without positions, reading begins at the oldest records.
    """
    if plan.offsets is not None or plan.start == "earliest":
        return "", plan.offsets or {}
    listed = await transport.call(list_shards(plan.stream))
    return listed.stream_id, await _offsets(transport, plan, listed.items)


async def _offsets(
    transport: AsyncTransport, plan: Plan, shards: Sequence[ShardOut]
) -> dict[int, int]:
    wanted = [shard for shard in shards if plan.shard is None or shard.index == plan.shard]
    if not isinstance(plan.start, datetime):
        return {
            shard.index: shard.next_ for shard in wanted if shard.open_ or plan.shard is not None
        }
    if plan.shard is not None:
        read = await _first_since(transport, plan, plan.shard)
        return {plan.shard: _offset_of(read)}
    known = {shard.index for shard in shards}
    roots = [shard.index for shard in shards if not known.intersection(shard.parents)]
    return await _since(transport, plan, roots)


async def _since(transport: AsyncTransport, plan: Plan, roots: list[int]) -> dict[int, int]:
    """Return the offsets from a time, starting with the oldest shards.

    A shard that ended before that time is followed by its children, once all their parents have ended.
    """
    ended: set[int] = set()
    found: dict[int, int] = {}
    looking = list(roots)
    while looking:
        shard = looking.pop(0)
        read = await _first_since(transport, plan, shard)
        found[shard] = _offset_of(read)
        if read.ended and not read.records:
            ended.add(shard)
            looking += [
                child.shard
                for child in read.children
                if ended.issuperset(child.parents) and child.shard not in looking
            ]
    return found


async def _first_since(transport: AsyncTransport, plan: Plan, shard: int) -> ShardRead:
    asked = {"time": plan.start, "limit": 1, "bytes_max": 1}
    return await transport.call(wire.read_shard(plan.stream, shard, asked))


def _offset_of(read: ShardRead) -> int:
    return read.records[0].offset if read.records else read.next_offset
