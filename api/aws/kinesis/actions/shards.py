"""ListShards, SplitShard, MergeShards and UpdateShardCount."""

from collections.abc import Awaitable
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import field

from api.aws.kinesis.call_helpers import (
    arn_of,
    charge_control_call,
    charged_stream,
    find_shard,
    now_ms,
    process_state,
    shard_id,
    stream_named,
    stream_of,
)
from api.aws.kinesis.descriptions import mode_of
from api.aws.kinesis.errors import (
    LIMIT_EXCEEDED,
    VALIDATION,
    already_resharded,
    invalid,
    no_shard_to_reshard,
    refuse,
)
from api.aws.kinesis.pagination import list_token, next_token
from api.aws.kinesis.shapes import (
    ON_DEMAND,
    HashKeyIn,
    KinesisShardOut,
    NextTokenIn,
    PageIn,
    PositiveIn,
    SecondsIn,
    ShardIdIn,
    StreamIdentity,
)
from api.aws.kinesis.shards import ShardFilter, chosen_shards, shard_out
from api.aws.kinesis.timestamps import moment_ms
from api.aws.kinesis.tokens import ListToken
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import OutcomeUnknown
from storage.domain.streams.stream import Shard, Stream

operations = Operations()

COUNTS_A_DAY = 10  # if Amazon's limits are enforced
_LISTED_MAX = 1_000


class ListShards(StreamIdentity):
    """Shards of a stream, or the rest of a list of them."""

    next_token: NextTokenIn = None
    exclusive_start_shard_id: ShardIdIn = None
    max_results: PageIn = None
    stream_creation_timestamp: SecondsIn = None
    shard_filter: ShardFilter | None = None


class ListShardsResult(OperationOutput):
    """A page of shards."""

    shards: list[KinesisShardOut]
    next_token: str | None = None


@operations.add("ListShards", ListShards, Action.STREAM_LIST)
async def list_shards(call: AwsCall[ListShards]) -> ListShardsResult:
    """List shards by name, without expired ones."""
    request = call.request
    stream, chosen, after = await _page_request(call)
    await charge_control_call(call, "ListShards", 1_000, stream)
    limit = min(request.max_results or _LISTED_MAX, _LISTED_MAX)
    shards = [
        shard
        for shard in chosen_shards(stream, chosen, now_ms(call))
        if shard_id(shard.index) > after
    ]
    page = shards[:limit]
    token = None
    if len(shards) > limit:
        rest = msgspec.to_builtins(chosen)
        token = await next_token(call, "shards", shard_id(page[-1].index), stream, rest)
    return ListShardsResult([shard_out(shard) for shard in page], token)


async def _page_request(call: AwsCall[ListShards]) -> tuple[Stream, ShardFilter | None, str]:
    """Return the stream, the filter, and the shard after which the page begins."""
    request = call.request
    named = request.stream_name is not None or request.stream_arn is not None
    if request.next_token is None:
        if not named:
            raise invalid("Either NextToken or StreamName should be provided.")
        stream = await stream_of(call, request.stream_name, request.stream_arn)
        _check_creation(stream, request.stream_creation_timestamp)
        return stream, request.shard_filter, request.exclusive_start_shard_id or ""
    if named or request.shard_filter is not None:
        raise invalid("NextToken and StreamName cannot be provided together.")
    if request.exclusive_start_shard_id is not None:
        raise invalid("NextToken and ExclusiveStartShardId cannot be provided together.")
    token: ListToken = await list_token(call, request.next_token, "shards")
    stream = await stream_named(call, token.stream)
    if stream.stream_id != token.stream_id:
        raise invalid("Invalid NextToken.")
    return stream, msgspec.convert(token.rest, ShardFilter | None), token.after


def _check_creation(stream: Stream, timestamp: float | None) -> None:
    """Raise AwsError if the request means an earlier stream of the same name."""
    if timestamp is not None and moment_ms(timestamp) // 1_000 != stream.created_at_ms // 1_000:
        raise invalid(
            f"StreamCreationTimestamp {timestamp} is not that of stream {stream.name.name}."
        )


# ── Reshard ──


class SplitShard(StreamIdentity):
    """A shard, and the first hash key of the second of its children."""

    shard_to_split: Annotated[ShardIdIn, REQUIRED] = None
    new_starting_hash_key: Annotated[HashKeyIn, REQUIRED] = None


class MergeShards(StreamIdentity):
    """Two shards with adjacent hash-key ranges."""

    shard_to_merge: Annotated[ShardIdIn, REQUIRED] = None
    adjacent_shard_to_merge: Annotated[ShardIdIn, REQUIRED] = None


class UpdateShardCount(StreamIdentity):
    """The target number of shards."""

    target_shard_count: Annotated[PositiveIn, REQUIRED] = None
    scaling_type: Annotated[str | None, bounds(choices=("UNIFORM_SCALING",)), REQUIRED] = None


class UpdateShardCountResult(OperationOutput):
    """The previous number of shards, and the target."""

    stream_name: str
    current_shard_count: int
    target_shard_count: int
    stream_arn: str = field(name="StreamARN")


@operations.add("SplitShard", SplitShard, Action.STREAM_MANAGE)
async def split_shard(call: AwsCall[SplitShard]) -> None:
    """Close a shard, and open two that replace it."""
    request = call.request
    stream = await _to_reshard(call, "SplitShard", 5)
    shard = await _open_shard(call, stream, request.shard_to_split)
    hash_key = int(request.new_starting_hash_key or 0)
    if not shard.first_hash_key + 1 < hash_key < shard.last_hash_key:
        raise invalid(
            f"NewStartingHashKey {hash_key} used in SplitShard() on shard {shard_id(shard.index)} in stream "
            f"{stream.name.name} under account {await call.account_id()} is not both greater than one plus "
            f"the shard's StartingHashKey {shard.first_hash_key} and less than the shard's EndingHashKey "
            f"{shard.last_hash_key}."
        )
    await _reshard(call.storage.streams.resharder.split(stream.name, shard.index, hash_key))


@operations.add("MergeShards", MergeShards, Action.STREAM_MANAGE)
async def merge_shards(call: AwsCall[MergeShards]) -> None:
    """Close two adjacent shards, and open one that replaces them."""
    request = call.request
    stream = await _to_reshard(call, "MergeShards", 5)
    first = await _open_shard(call, stream, request.shard_to_merge)
    second = await _open_shard(call, stream, request.adjacent_shard_to_merge)
    after, before = first.last_hash_key + 1, second.last_hash_key + 1
    if after != second.first_hash_key and before != first.first_hash_key:
        raise invalid(
            f"Shards {shard_id(first.index)} and {shard_id(second.index)} in stream {stream.name.name} "
            f"under account {await call.account_id()} are not an adjacent pair of shards eligible for merging"
        )
    await _reshard(call.storage.streams.resharder.merge(stream.name, first.index, second.index))


@operations.add("UpdateShardCount", UpdateShardCount, Action.STREAM_MANAGE)
async def update_shard_count(call: AwsCall[UpdateShardCount]) -> UpdateShardCountResult:
    """Split and merge shards until the target number covers the ring in equal ranges."""
    target = call.request.target_shard_count or 0
    stream = await _to_reshard(call, "UpdateShardCount", 10)
    now = len(stream.open_shards)
    if target > limits.SHARDS_MAX:
        refuse(LIMIT_EXCEEDED, f"A stream can have at most {limits.SHARDS_MAX} shards.")
    shard_limits = process_state(call).shard_limits
    if shard_limits.limited:
        _check_scale(now, target)
    shard_limits.daily("UpdateShardCount", stream.stream_id, COUNTS_A_DAY, now_ms(call) / 1_000)
    if target != now:
        await _reshard(call.storage.streams.resharder.set_shard_count(stream.name, target))
    return UpdateShardCountResult(stream.name.name, now, target, await arn_of(call, stream))


def _check_scale(now: int, target: int) -> None:
    """Raise AwsError unless Amazon allows this scaling in one step."""
    if target > 2 * now:
        refuse(
            LIMIT_EXCEEDED,
            "UpdateShardCount cannot scale up over double your current open shard count. "
            f"Current open shard count: {now} Target shard count: {target}",
        )
    if 2 * target < now:
        refuse(
            LIMIT_EXCEEDED,
            "UpdateShardCount cannot scale down below half your current open shard count. "
            f"Current open shard count: {now} Target shard count: {target}",
        )


async def _to_reshard(
    call: AwsCall[SplitShard] | AwsCall[MergeShards] | AwsCall[UpdateShardCount],
    operation: str,
    per_second: float,
) -> Stream:
    """Return the current stream. Raises AwsError for one in on-demand mode."""
    stream = await charged_stream(call, operation, per_second)
    if mode_of(stream.spec) == ON_DEMAND:
        refuse(
            VALIDATION,
            f"Request is invalid. Stream {stream.name.name} under account {await call.account_id()} "
            "is in On-Demand mode.",
        )
    return await call.storage.catalog.fresh_stream(stream.name)


async def _open_shard(
    call: AwsCall[SplitShard] | AwsCall[MergeShards], stream: Stream, name: str | None
) -> Shard:
    """Return the shard of that name, if it is open.

    Raises AwsError: ResourceNotFound; InvalidArgument for a closed one.
    """
    shard = find_shard(stream, str(name))
    if shard is None:
        raise no_shard_to_reshard(str(name), stream.name.name, await call.account_id())
    if not shard.is_open:
        raise already_resharded(shard_id(shard.index), stream.name.name, await call.account_id())
    return shard


async def _reshard(change: Awaitable[Stream]) -> None:
    """Run the reshard; one with an unknown outcome continues in the background.

    At Amazon every reshard does.
    """
    with suppress(OutcomeUnknown):
        await change
