"""Helpers of the operations: the stream, shard and time of a call, and their AWS names."""

import re
from contextlib import suppress
from typing import Any, cast

from api.aws.kinesis.arns import NamedResource, read_arn, stream_arn
from api.aws.kinesis.errors import invalid, no_such_shard, no_such_stream
from api.aws.kinesis.state.process_state import KinesisProcessState
from api.aws.protocol.service import AwsCall
from storage.domain.errors import ShardNotFound, StreamNotFound, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.streams.stream import Shard, Stream

_SHARD_ID = re.compile(r"(?:shardId-)?([0-9]{1,12})")


def process_state(call: AwsCall[Any]) -> KinesisProcessState:
    """Return the state that the endpoint keeps between calls."""
    return cast(KinesisProcessState, call.process_state)


def now_ms(call: AwsCall[Any]) -> int:
    """Return the time in milliseconds since 1970."""
    return call.storage.registered_consumers.now_ms()


async def secret(call: AwsCall[Any]) -> bytes:
    """Return the secret that signs tokens."""
    cached = call.storage.token_secret.cached
    return cached or await call.storage.token_secret.get()


async def charge_control_call(
    call: AwsCall[Any], operation: str, per_second: float, stream: Stream | None
) -> None:
    """Count a control call against the rate of the account or stream.

    Raises AwsError: LimitExceeded.
    """
    whose = call.principal.namespace if stream is None else stream.stream_id
    process_state(call).shard_limits.control(operation, whose, per_second, now_ms(call) / 1_000)


async def stream_of(call: AwsCall[Any], name: str | None, arn: str | None) -> Stream:
    """Return the stream that a name, an ARN or both name, after authorisation.

    Raises AwsError: InvalidArgument, ResourceNotFound; Forbidden.
    """
    stream_name = await _named(call, name, arn) if arn is not None else name
    if stream_name is None:
        raise invalid("Either StreamName or StreamARN must be provided.")
    return await stream_named(call, stream_name)


async def charged_stream(
    call: AwsCall[Any], operation: str, per_second: float, *, by_stream: bool = False
) -> Stream:
    """Return the stream that a control call names, and count the call.

    It counts against the rate of the account or, with `by_stream`, of the stream. Raises what `stream_of` and
    `charge_control_call` raise.
    """
    request = call.request
    stream = await stream_of(call, getattr(request, "stream_name", None), request.stream_arn)
    await charge_control_call(call, operation, per_second, stream if by_stream else None)
    return stream


async def _named(call: AwsCall[Any], name: str | None, arn: str) -> str:
    named = read_arn(arn)
    if named is None or named.is_consumer:
        raise invalid(f"{arn} is not the ARN of a stream.")
    if name is not None and name != named.stream:
        raise invalid(f"StreamName {name} and StreamARN {arn} refer to different streams.")
    await check_account(call, named)
    return named.stream


async def check_account(call: AwsCall[Any], named: NamedResource) -> None:
    """Raise AwsError for another account's stream, which does not exist here."""
    if named.account != await call.account_id():
        raise no_such_stream(named.stream, named.account)


async def stream_named(call: AwsCall[Any], word: str) -> Stream:
    """Return the stream of that name. Raises AwsError: ResourceNotFound; Forbidden."""
    try:
        name = StreamName(word, call.principal.namespace)
        call.authorise(str(name))
        return await call.storage.catalog.stream(name)
    except (StreamNotFound, ValidationFailed):
        raise no_such_stream(word, await call.account_id()) from None


async def arn_of(call: AwsCall[Any], stream: Stream) -> str:
    """Return the stream's ARN."""
    return stream_arn(call.region, await call.account_id(), stream.name.name)


def shard_id(index: int) -> str:
    """Return a shard's name: its number in order of creation, which is never reused."""
    return f"shardId-{index:012d}"


async def shard_of(call: AwsCall[Any], stream: Stream, name: str) -> Shard:
    """Return the shard of that name. Raises AwsError: ResourceNotFound."""
    shard = find_shard(stream, name)
    if shard is None:
        raise no_such_shard(name, stream.name.name, await call.account_id())
    return shard


def find_shard(stream: Stream, name: str) -> Shard | None:
    """Return the shard of that name; None if there is none."""
    match = _SHARD_ID.fullmatch(name)
    with suppress(ShardNotFound):
        return stream.shard(int(match[1])) if match is not None else None
    return None
