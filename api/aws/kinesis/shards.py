"""Shards in the Kinesis format, and the filters that select them.

opened ──────────── closed ─────────────── expired (no longer listed)
   records arrive     records are read
"""

from collections.abc import Callable, Sequence
from typing import Annotated, assert_never, cast

from api.aws.kinesis.call_helpers import shard_id
from api.aws.kinesis.errors import invalid
from api.aws.kinesis.records.sequence_numbers import ending_number, starting_number
from api.aws.kinesis.shapes import (
    ChildShard,
    HashKeyRange,
    KinesisShardOut,
    SecondsIn,
    SequenceNumberRange,
    ShardIdIn,
)
from api.aws.kinesis.timestamps import moment_ms
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.shapes import Input
from storage.domain.streams.stream import Shard, Stream

FILTERS = (
    "AFTER_SHARD_ID",
    "AT_TRIM_HORIZON",
    "FROM_TRIM_HORIZON",
    "AT_LATEST",
    "AT_TIMESTAMP",
    "FROM_TIMESTAMP",
)


class ShardFilter(Input):
    """Filter of the shards to list."""

    type: Annotated[str | None, bounds(choices=FILTERS), REQUIRED] = None
    shard_id: ShardIdIn = None
    timestamp: SecondsIn = None


def shard_out(shard: Shard) -> KinesisShardOut:
    """Describe a shard."""
    closed_ms, parents = shard.closed_at_ms, [shard_id(index) for index in shard.parents]
    ending = None
    if closed_ms is not None:
        ending = ending_number(shard.opened_at_ms, shard.index, closed_ms)
    return KinesisShardOut(
        shard_id=shard_id(shard.index),
        hash_key_range=hash_key_range(shard),
        sequence_number_range=SequenceNumberRange(
            starting_number(shard.opened_at_ms, shard.index), ending
        ),
        parent_shard_id=parents[0] if parents else None,
        adjacent_parent_shard_id=parents[1] if len(parents) > 1 else None,
    )


def hash_key_range(shard: Shard) -> HashKeyRange:
    """Return the hash-key range of a shard."""
    return HashKeyRange(str(shard.first_hash_key), str(shard.last_hash_key))


def child_shard(shard: Shard) -> ChildShard:
    """Describe a shard in the end event of its parent."""
    parents = [shard_id(index) for index in shard.parents]
    return ChildShard(shard_id(shard.index), parents, hash_key_range(shard))


def chosen_shards(stream: Stream, chosen: ShardFilter | None, now_ms: int) -> Sequence[Shard]:
    """Return the shards that a filter selects, ordered by name. Raises AwsError.

    Without a filter all shards are selected.
    """
    test = _test(stream, chosen, now_ms)
    return [shard for shard in stream.shards if test(shard)]


def _test(stream: Stream, chosen: ShardFilter | None, now_ms: int) -> Callable[[Shard], bool]:
    horizon_ms, kept_ms = stream.created_at_ms, stream.spec.retention_ms
    if kept_ms is not None:
        horizon_ms = max(horizon_ms, now_ms - kept_ms)
    match "FROM_TRIM_HORIZON" if chosen is None else cast(str, chosen.type):
        case "FROM_TRIM_HORIZON":
            return lambda _: True  # older shards have expired, and are not listed in the stream
        case "AT_TRIM_HORIZON":
            return _open_at(stream, horizon_ms)
        case "AT_LATEST":
            return lambda shard: shard.is_open
        case "AFTER_SHARD_ID":
            after = chosen.shard_id if chosen else None
            if after is None:
                raise invalid("ShardId must be provided for a filter of type AFTER_SHARD_ID.")
            return lambda shard: shard_id(shard.index) > after
        case "AT_TIMESTAMP":
            return _open_at(stream, max(horizon_ms, _moment(chosen, now_ms)))
        case "FROM_TIMESTAMP":
            since_ms = max(horizon_ms, _moment(chosen, now_ms))
            return lambda shard: shard.is_open or _ends_ms(stream, shard) >= since_ms
        case other:
            assert_never(other)  # type: ignore[arg-type]


def _open_at(stream: Stream, at_ms: int) -> Callable[[Shard], bool]:
    return lambda shard: (
        shard.opened_at_ms <= at_ms and (shard.is_open or _ends_ms(stream, shard) >= at_ms)
    )


def _ends_ms(stream: Stream, shard: Shard) -> int:
    """Return the last time at which a closed shard counts as open.

    That is until its children were opened, which happens in a later second than its closing: so the ring is covered at every
    moment.
    """
    follow_ms = [child.opened_at_ms - 1 for child in stream.children_of(shard.index)]
    return max([cast(int, shard.closed_at_ms), *follow_ms])


def _moment(chosen: ShardFilter | None, now_ms: int) -> int:
    if chosen is None or chosen.timestamp is None:
        raise invalid("Timestamp must be provided for a filter of this type.")
    at_ms = moment_ms(chosen.timestamp)
    if at_ms > now_ms:
        raise invalid("The timestamp of a ShardFilter cannot be in the future.")
    return at_ms
