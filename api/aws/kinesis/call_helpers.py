"""What the operations ask of a call: its stream, its shard, its time, and what they are called at Amazon's."""

import re
from typing import Any, cast

from api.aws.kinesis.arns import Named, read_arn, stream_arn
from api.aws.kinesis.errors import invalid, no_such_shard, no_such_stream
from api.aws.kinesis.state.process_state import Kept
from api.aws.protocol.service import Call
from storage.domain.errors import ShardNotFound, StreamNotFound, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.streams.stream import Shard, Stream

_SHARD_ID = re.compile(r"(?:shardId-)?([0-9]{1,12})")


def kept(call: Call[Any]) -> Kept:
    """What the door remembers."""
    return cast(Kept, call.kept)


def now_ms(call: Call[Any]) -> int:
    """The time."""
    return call.storage.registrations.now_ms()


async def secret(call: Call[Any]) -> bytes:
    """What tokens are signed with."""
    known = call.storage.registrations.known_secret
    return known or await call.storage.registrations.secret()


async def pace(call: Call[Any], operation: str, per_second: float, stream: Stream | None) -> None:
    """Count a control call, of the account's or the stream's. Raises AwsError: LimitExceeded."""
    whose = call.principal.namespace if stream is None else stream.stream_id
    kept(call).pace.control(operation, whose, per_second, now_ms(call) / 1_000)


async def stream_of(call: Call[Any], name: str | None, arn: str | None) -> Stream:
    """The stream that a name and an ARN, or one of them, stand for, which the caller may use so.

    Raises AwsError: InvalidArgument, ResourceNotFound; Forbidden.
    """
    word = await _named(call, name, arn) if arn is not None else name
    if word is None:
        raise invalid("Either StreamName or StreamARN must be provided.")
    return await stream_named(call, word)


async def _named(call: Call[Any], name: str | None, arn: str) -> str:
    named = read_arn(arn)
    if named is None or named.is_consumer:
        raise invalid(f"{arn} is not the ARN of a stream.")
    if name is not None and name != named.stream:
        raise invalid(f"StreamName {name} and StreamARN {arn} name different streams.")
    await check_account(call, named)
    return named.stream


async def check_account(call: Call[Any], named: Named) -> None:
    """Raise AwsError for another account's stream: there is none here."""
    if named.account != await call.account_id():
        raise no_such_stream(named.stream, named.account)


async def stream_named(call: Call[Any], word: str) -> Stream:
    """The stream of that name. Raises AwsError: ResourceNotFound; Forbidden."""
    try:
        name = StreamName(word, call.principal.namespace)
        call.authorise(str(name))
        return await call.storage.catalog.stream(name)
    except (StreamNotFound, ValidationFailed):
        raise no_such_stream(word, await call.account_id()) from None


async def arn_of(call: Call[Any], stream: Stream) -> str:
    """The stream's ARN."""
    return stream_arn(call.region, await call.account_id(), stream.name.name)


def shard_id(index: int) -> str:
    """A shard's name: its number in the order of their creation, which is never used again."""
    return f"shardId-{index:012d}"


async def shard_of(call: Call[Any], stream: Stream, word: str) -> Shard:
    """The shard of that name. Raises AwsError: ResourceNotFound."""
    found = _SHARD_ID.fullmatch(word)
    try:
        if found is not None:
            return stream.shard(int(found[1]))
    except ShardNotFound:
        pass
    raise no_such_shard(word, stream.name.name, await call.account_id())
