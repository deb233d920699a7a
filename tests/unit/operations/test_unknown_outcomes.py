"""A completed change whose result cannot be read back is unknown, not failed."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from api.aws.kinesis.actions.put import _with_current_shards
from api.rest.routes.shards import reshard_stream
from api.rest.schemas.shard import Reshard, Split
from storage.domain.errors import OutcomeUnknown, StorageBusy, StorageUnavailable
from storage.domain.names import StreamName
from storage.domain.streams.stream import Appended

CLICKS = StreamName("clicks", "default")


Read = Callable[..., Awaitable[Any]]


@pytest.fixture(params=[StorageUnavailable, StorageBusy])
def away(request: pytest.FixtureRequest) -> Read:
    """A read that Postgres does not serve now."""

    error: type[Exception] = request.param

    async def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


async def done(*_: Any, **__: Any) -> None:
    """Succeed."""


async def test_append_to_unlisted_shard_is_outcome_unknown(away: Read):
    """PutRecords returned 503 during a split while Postgres was away; its records were stored."""
    stream = SimpleNamespace(name=CLICKS, shards=[SimpleNamespace(index=0)])
    call = SimpleNamespace(storage=SimpleNamespace(catalog=SimpleNamespace(fresh_stream=away)))
    placed = Appended(shard=1, offset=0, arrival_ms=0, duplicate=False)

    with pytest.raises(OutcomeUnknown):
        await _with_current_shards(cast(Any, call), cast(Any, stream), [placed])


async def test_completed_reshard_is_outcome_unknown(away: Read):
    streams = SimpleNamespace(resharder=SimpleNamespace(split=done))
    reader = SimpleNamespace(shards=away)
    catalog = SimpleNamespace(fresh_stream=done)
    storage = cast(Any, SimpleNamespace(streams=streams, record_reader=reader, catalog=catalog))
    split = Reshard(split=Split(shard=0, at_hash_key="7"))

    with pytest.raises(OutcomeUnknown):
        await reshard_stream(CLICKS, storage, split)
