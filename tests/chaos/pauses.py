"""Pauses of a queue and of a consumer group."""

import asyncio

from storage.domain import limits
from tests.chaos.callers import Caller, Told
from tests.chaos.history import Kind
from tests.chaos.requests import send_until_done

QUEUE_NOTICED_S = (limits.LISTEN_CHECK_MS + limits.LISTEN_GRACE_MS) / limits.SECOND_MS
"""Maximum delay until a process that missed the announcement stops delivering."""
HEARTBEAT_S = limits.HEARTBEAT_MS_MAX / limits.SECOND_MS
"""Maximum delay until a socket's member notices; a fetch by REST sends a heartbeat itself."""


async def pause_queue(caller: Caller, queue: str, lasts: float) -> None:
    """Pause a queue until that must have been noticed, and then for this duration."""
    await _pause(caller, f"/queues/{queue}/pause", QUEUE_NOTICED_S, lasts, log=queue)


async def pause_group(caller: Caller, group: str, lasts: float) -> None:
    """Pause a consumer group until its members must have noticed, and then for this duration."""
    await _pause(caller, f"/groups/{group}/pause", 0.0, HEARTBEAT_S + lasts, group=group)


async def _pause(
    caller: Caller, path: str, noticed_s: float, lasts: float, *, log: str = "", group: str = ""
) -> None:
    await send_until_done(caller.http, "PUT", path, None, {200})
    paused_at = caller.history.now()
    await asyncio.sleep(noticed_s + lasts)
    caller.went_well(Kind.PAUSED, log, paused_at, Told(), group=group, promised_s=noticed_s)
    await send_until_done(caller.http, "DELETE", path, None, {200})
