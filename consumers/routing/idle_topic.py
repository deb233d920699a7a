"""Idle topic: every message was routed, and a single read waits for the next one.

A router with a tail, buffers and reports takes 30 KB; most topics of a deployment have nothing to route most of the time.
"""

from collections.abc import Mapping
from typing import NamedTuple

from storage.domain import limits
from storage.domain.names import LogId, StreamName
from storage.streams.read import RecordReader


class IdleTopic(NamedTuple):
    """Stored positions of a topic without messages behind them, and its routes' version."""

    positions: Mapping[int, int]
    routes_version: int


async def wait_for_messages(
    reader: RecordReader, name: StreamName, stream_id: LogId, positions: Mapping[int, int]
) -> None:
    """Return when a shard has a message, a gap or an end behind its position, or has expired.

    Raises StreamNotFound or StreamRecreated once the topic was deleted.
    """
    is_idle = True
    while is_idle:
        reads = await reader.read_shards(
            name, positions, records_max=1, wait_ms=limits.WAIT_MS_MAX, stream_id=stream_id
        )
        is_idle = len(reads) == len(positions) and not any(
            read.records or read.gap or read.ended for read in reads
        )
