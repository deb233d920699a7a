"""Requests to the members of a replica set, without one."""

import asyncio
import gc

from storage.redis.member_store import RedisMembers


async def test_cancelled_request_leaves_nothing_unawaited(recwarn):
    """A controller that was stopped as it began a round logged coroutines that were never awaited."""
    members = RedisMembers("redis://127.0.0.1:1")
    observing = asyncio.create_task(members.observe(["127.0.0.1:1", "127.0.0.1:2"]))
    await asyncio.sleep(0)  # the requests are created, and none has begun

    observing.cancel()
    await asyncio.gather(observing, return_exceptions=True)
    gc.collect()

    assert [str(warning.message) for warning in recwarn] == []
    assert observing.cancelled()
    await members.close()
